"""What a reward-conditioned policy has learned."""

from typing import Any, NamedTuple

from submax.core.arrays import Booleans, Floats
from submax.core.contracts.problem import Problem
from submax.core.running.stored import stored
from submax.policies.reward_conditioned.pace import Pace


@stored("reward-conditioned-state")
class RewardConditionedState(NamedTuple):
    """The estimator's belief, and which replicas had any feedback yet, ``informed [R]``.

    ``values [R, L]`` is the importance-sampled reward of each level, ``pace`` how many decisions
    are taken between rewards; both are None where the strategy does not ask for them. ``shared
    [R, 1, M]`` are the probabilities in all contexts, where it takes long to find them.
    """

    problem: Problem
    params: Any
    informed: Booleans
    values: Floats | None
    pace: Pace | None = None
    shared: Floats | None = None
