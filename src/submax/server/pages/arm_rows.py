"""What is known of each choice of a bandit."""

import math

import msgspec
import numpy as np
from scipy.special import ndtri, stdtrit

from submax.core.arrays import Floats
from submax.live.rollups.rollups import Rollups
from submax.live.rollups.sums import COLUMNS, Sums
from submax.live.rollups.tier import choice_key
from submax.schema.menu import Menu

ERROR = 0.05
"""The chance with which an interval misses the truth."""


class ArmRow(msgspec.Struct, frozen=True):
    """A choice: how often it was chosen, and what it earns.

    ``mean`` is the plain mean of its rewards. ``rate`` is the mean in which every decision counts
    1 / propensity, with the interval from ``low`` to ``high``. ``probability`` is the one with
    which it is chosen now, None if that depends on the context.
    """

    slot: str
    choice: str
    status: str
    decisions: int
    share: float | None
    matured: int
    rewarded: int
    mean: float | None
    rate: float | None
    low: float | None
    high: float | None
    effective: float | None
    probability: float | None


def arm_rows(
    rollups: Rollups,
    menu: Menu,
    shares: list[float] | None,
    bounds: tuple[float, float] | None,
) -> list[ArmRow]:
    """One row for each choice of each slot, in the order of the menu.

    ``shares`` are the current probabilities of the active choices, if there is one slot and no
    context. ``bounds`` are those of the rewards, if they have any.
    """
    table = dict(zip(rollups.choices.leading.tolist(), rollups.choices.rows, strict=True))
    nothing = np.zeros(COLUMNS)
    rows = []
    for number, slot in enumerate(menu.slots):
        keys = choice_key(number, np.arange(len(slot.choices))).tolist()
        sums = Sums.of_table(np.array([table.get(key, nothing) for key in keys]))
        total = float(sums.decisions.sum())
        coming = iter(shares or ())
        lows, highs = mean_interval(sums, bounds)
        for place, choice in enumerate(slot.choices):
            active = choice.status == "active"
            probability = None
            if shares is not None and number == 0:
                probability = next(coming) if active else 0.0
            mean = sums.weighted_mean[place]
            rows.append(
                ArmRow(
                    slot.name,
                    choice.name,
                    choice.status,
                    int(sums.decisions[place]),
                    sums.decisions[place] / total if total else None,
                    int(sums.matured[place]),
                    int(sums.rewarded[place]),
                    _finite(sums.mean[place]),
                    _finite(mean),
                    _finite(lows[place]),
                    _finite(highs[place]),
                    _finite(sums.effective[place]),
                    probability,
                )
            )
    return rows


def mean_interval(sums: Sums, bounds: tuple[float, float] | None) -> tuple[Floats, Floats]:
    """The ends of a 95 % interval of each weighted mean, for one look.

    For rewards with ``bounds`` it is Wilson's (1927) with the effective number of decisions, which
    is also right for rewards between the bounds, whose variance is not larger, and for choices
    that never got a reward. For other rewards it is Student's.
    """
    mean, effective = sums.weighted_mean, sums.effective
    if bounds is None:
        width = stdtrit(np.maximum(effective - 1, 1.0), 1 - ERROR / 2) * sums.weighted_error
        return mean - width, mean + width
    low, span = bounds[0], bounds[1] - bounds[0]
    share, squared = (mean - low) / span, ndtri(1 - ERROR / 2) ** 2
    middle = (share + squared / (2 * effective)) / (1 + squared / effective)
    spread = np.sqrt(squared * share * (1 - share) / effective + (squared / (2 * effective)) ** 2)
    half = spread / (1 + squared / effective)
    return low + span * (middle - half), low + span * (middle + half)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
