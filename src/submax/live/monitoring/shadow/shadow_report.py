"""What can be said about a shadow now."""

import math
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    # Clients read reports, and should not need numpy for it.
    from submax.bandit.lift import Lift

State = Literal["none", "running", "stopped"]


class ShadowReport(msgspec.Struct, frozen=True, kw_only=True):
    """A shadow, and the difference in reward per decision between the shadow and the bandit.

    ``state`` is `none` if there is no shadow, `stopped` if it was switched off because of
    ``reason``. ``version`` is its newest version, fitted to ``rows`` rows. It has judged ``judged``
    decisions, of which ``compared`` have matured. With a chance of 95 % the true difference is
    between ``low`` and ``high`` at all times together, however often one looks; None: nothing can
    be said. The truth is the mean over the decisions that were compared. ``exact``: the chance
    holds for any number of decisions, because rewards have bounds. ``verdict`` is `better` or
    `worse` if the interval is on one side of 0. ``failures`` counts how often the shadow failed or
    was slow in this process.
    """

    state: State
    policy: Any = None
    reason: str | None = None
    version: int = 0
    rows: int = 0
    judged: int = 0
    compared: int = 0
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    exact: bool = False
    verdict: Literal["better", "worse", "undecided"] = "undecided"
    failures: int = 0


def lift_fields(lift: "Lift") -> dict[str, Any]:
    """The fields of a report that a lift gives."""
    verdict = "better" if lift.low > 0 else "worse" if lift.high < 0 else "undecided"
    numbers = {"estimate": lift.estimate, "low": lift.low, "high": lift.high}
    known = {name: one if math.isfinite(one) else None for name, one in numbers.items()}
    return {**known, "exact": lift.exact, "verdict": verdict}
