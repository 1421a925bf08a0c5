"""Conformance suites: each raises an AssertionError that names the class and the broken rule.

They run over every class in submax, and over a class of your own just the same:

>>> from submax.policies.epsilon_greedy import EpsilonGreedy
>>> check_policy(EpsilonGreedy(0.3))
"""

from submax.testing.clock import ManualClock
from submax.testing.environments import check_delay, check_environment
from submax.testing.estimators import check_estimator
from submax.testing.policies import check_policy
from submax.testing.strategies import check_strategy

__all__ = [
    "ManualClock",
    "check_delay",
    "check_environment",
    "check_estimator",
    "check_policy",
    "check_strategy",
]
