"""Conformance suites: each raises an AssertionError that names the class and the broken rule.

They run over every class in submax, and over a class of your own just the same:

>>> from submax.policies.classic.epsilon_greedy import EpsilonGreedy
>>> check_policy(EpsilonGreedy(0.3))
"""

from submax.testing.check_delay import check_delay
from submax.testing.check_environment import check_environment
from submax.testing.check_estimator import check_estimator
from submax.testing.check_policy import check_policy
from submax.testing.check_scale import check_scale
from submax.testing.check_store import check_store
from submax.testing.check_strategy import check_strategy
from submax.testing.manual_clock import ManualClock

__all__ = [
    "ManualClock",
    "check_delay",
    "check_environment",
    "check_estimator",
    "check_policy",
    "check_scale",
    "check_store",
    "check_strategy",
]
