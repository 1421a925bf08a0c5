"""The minimax optimal strategy in the stochastic case."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import whole_number
from submax.policies.classic.index_policy import ArmCounts, IndexPolicy


@dataclass(frozen=True)
class MOSS(IndexPolicy):
    """Take the arm with the highest mean + √(max(ln(T / (K n)), 0) / n).

    n is the arm's number of pulls, K the number of arms, and T the ``horizon``. If the horizon is
    None, T is the number of pulls so far, as in the anytime variant. An arm that was never pulled
    is taken first. If ``pending``, pulls whose reward has not come back count, too, see
    `IndexPolicy`.

    Reference: Audibert and Bubeck (2009); Degenne and Perchet (2016) on the anytime variant.
    """

    pending: bool = False
    horizon: int | None = None

    def __post_init__(self) -> None:
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)

    def index(self, counts: ArmCounts) -> Floats:
        horizon = counts.total if self.horizon is None else float(self.horizon)
        pulls = np.maximum(counts.pulls, 1.0)
        width = np.log(np.maximum(horizon / (counts.arms * pulls), 1.0)) / pulls
        return np.where(counts.pulls > 0, counts.means + np.sqrt(width), np.inf)
