"""Upper confidence bounds."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import non_negative
from submax.policies.classic.arm_statistics import ArmStatistics
from submax.policies.classic.index_policy import ArmCounts, IndexPolicy


@dataclass(frozen=True)
class UCB1(IndexPolicy):
    """Take the arm with the highest mean + √(c ln t / n).

    n is the arm's number of pulls, t that of all arms, and c is ``exploration``. The mean is
    divided by the span of the rewards if their bounds are known. An arm that was never pulled is
    taken first. If ``pending``, pulls whose reward has not come back count, too, see `IndexPolicy`.

    Reference: Auer et al. (2002).
    """

    pending: bool = False
    exploration: float = 2.0

    def __post_init__(self) -> None:
        non_negative("exploration", self.exploration)

    def successes(self, arms: ArmStatistics) -> Floats:
        bounds = arms.problem.scale.bounds
        return arms.rewards if bounds is None else arms.rewards / (bounds[1] - bounds[0])

    def index(self, counts: ArmCounts) -> Floats:
        pulls = np.maximum(counts.pulls, 1.0)
        width = np.sqrt(self.exploration * np.log(np.maximum(counts.total, 1.0)) / pulls)
        return np.where(counts.pulls > 0, counts.means + width, np.inf)
