"""What becomes of decisions."""

from collections import Counter
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.live.log.decisions.decided_rows import DecidedRows

STATUSES = ("pending", "learned", "held out", "never activated", "without reward", "paused")
"""The names of what can become of a decision. The first one is that of a decision that has not
matured."""
PENDING, LEARNED, HELD_OUT, NEVER_ACTIVATED, WITHOUT_REWARD, PAUSED = range(len(STATUSES))


class Outcomes(NamedTuple):
    """The outcomes of decisions that mature, ``[n]``: ``status`` by number, and ``reward``.

    ``reward`` is NaN if there is none; the default reward is one. A decision that was never
    activated has no default reward. ``by_default`` are those that are learned by it. ``parts`` are
    the parts of the rewards that came, ``[n, P]``, NaN where one did not.
    """

    status: NDArray[np.uint8]
    reward: Floats
    by_default: NDArray[np.bool_]
    parts: Floats

    @classmethod
    def of(
        cls,
        rows: DecidedRows,
        given: Floats,
        parts: Floats,
        activated: NDArray[np.bool_],
        default_reward: float | None,
    ) -> "Outcomes":
        """Return the outcomes of decisions; ``given`` is NaN for decisions without a reward."""
        default = np.nan if default_reward is None else default_reward
        reward = np.where(activated & np.isnan(given), default, given)
        status = np.where(np.isnan(reward), WITHOUT_REWARD, LEARNED)
        status = np.where(rows.paused, PAUSED, status)
        status = np.where(rows.holdout, HELD_OUT, status)
        status = np.where(activated, status, NEVER_ACTIVATED).astype(np.uint8)
        return cls(status, reward, (status == LEARNED) & np.isnan(given), parts)

    def counts(self) -> Counter[str]:
        """Count the decisions by what became of them, without zeros."""
        numbers = np.bincount(self.status, minlength=len(STATUSES)).tolist()
        by_name = dict(zip(STATUSES, numbers, strict=True))
        matured, by_default = len(self.status), int(self.by_default.sum())
        return +Counter({"matured": matured, **by_name, "by default": by_default})


class Observer(Protocol):
    """Is told by a ledger what becomes of decisions, which are named by their positions."""

    def matured(self, position: NDArray[np.int64], outcomes: Outcomes) -> None:
        """Decisions have matured, in this order."""

    def late_rewards(self, position: NDArray[np.int64]) -> None:
        """Rewards came for decisions that had matured; a position may come several times."""
