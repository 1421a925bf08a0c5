"""What a reward-conditioned policy has learned."""

from typing import Any, NamedTuple

from submax.core.arrays import Booleans, Floats
from submax.core.contracts.problem import Problem
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.policies.reward_conditioned.decision_counts import DecisionCounts


@stored("reward-conditioned-state")
class RewardConditionedState(NamedTuple):
    """What the estimator has learned (``params``), and which replicas had feedback (``informed``).

    ``values [R, L]`` is the importance-sampled reward of each level, and ``decision_counts`` says
    how many decisions are made for each feedback; both are None if the strategy does not need them.
    ``shared [R, 1, M]`` are the probabilities of all contexts, if the contexts share them and
    computing them takes long. If only some choices are ``eligible``, the ``problem`` has these
    alone, and ``params`` still know all of them.
    """

    problem: Problem
    params: Any
    informed: Booleans
    values: Floats | None
    decision_counts: DecisionCounts | None = None
    shared: Floats | None = None
    eligible: Choices | None = None
