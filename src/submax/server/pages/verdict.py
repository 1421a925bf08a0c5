"""One sentence on which arm is ahead, or why that cannot be said yet."""

import math
from typing import NamedTuple

import numpy as np

from submax.dashboard.formats import number
from submax.live.lift.lift_tally import PLANNED_DECISIONS
from submax.live.lift.mixture_boundary import mixture_boundary
from submax.live.rollups.rollups import Rollups
from submax.live.rollups.sums import COLUMNS, Sums
from submax.live.rollups.tier import choice_key
from submax.schema.choices import Slot

ERROR = 0.05
"""The chance with which the interval misses the truth at any time."""
FEWEST = 50
"""Decisions of an arm that have matured, below which nothing is said: the interval holds for large
samples."""


class Comparison(NamedTuple):
    """By how much the arm ``ahead`` is better than ``behind``, with an interval for all times."""

    ahead: str
    behind: str
    low: float
    high: float


def comparison(rollups: Rollups, slot: Slot) -> Comparison | None:
    """Compare the two active arms that earn most; None if one was chosen too rarely.

    Every decision that has matured gives x = w r for the better arm, −w r for the other and 0 for
    all others, with w = 1 / propensity. Its expected value is the difference of what the two arms
    earn, whatever the policy preferred at that time. The interval around the mean of x is valid at
    all times (Howard, Ramdas, McAuliffe and Sekhon 2021), for large samples.
    """
    table = dict(zip(rollups.choices.leading.tolist(), rollups.choices.rows, strict=True))
    keys = choice_key(0, np.arange(len(slot.choices))).tolist()
    sums = Sums.of_table(np.array([table.get(key, np.zeros(COLUMNS)) for key in keys]))
    active = np.array([one.status == "active" for one in slot.choices])
    known = np.flatnonzero(active & (sums.matured >= FEWEST))
    if len(known) < 2:
        return None
    best, second = known[np.argsort(-sums.weighted_mean[known], kind="stable")[:2]]
    total = float(sums.matured.sum())
    difference = (sums.weighted[best] - sums.weighted[second]) / total
    deviation = math.sqrt((sums.weighted_squares[best] + sums.weighted_squares[second]) / total)
    half = deviation * mixture_boundary(total, ERROR, 0.0, PLANNED_DECISIONS) / total
    names = slot.choices[best].name, slot.choices[second].name
    return Comparison(*names, float(difference - half), float(difference + half))


def sentence(rollups: Rollups | None, slot: Slot | None, *, percent: bool) -> str:
    """What can be said about the arms; ``percent`` if rewards are 0 or 1."""
    if rollups is None or not len(rollups.choices.keys):
        return "No decision has been made yet, so that nothing can be said."
    if slot is None:
        return "The action has several parts, which are compared one by one on the page Arms."
    found = comparison(rollups, slot)
    if found is None:
        return (
            f"It cannot be said yet which arm is ahead: fewer than two active arms have {FEWEST} "
            "decisions with a known reward."
        )
    scale, unit = (100, "percentage points") if percent else (1, "")
    low, high = scale * found.low, scale * found.high
    if low <= 0:
        return (
            f"It cannot be said yet which arm is ahead: {found.ahead} seems best, and differs from "
            f"{found.behind} by {number(low)} to {number(high)} {unit}".rstrip()
            + " (95 % interval, valid at any time)."
        )
    return (
        f"{found.ahead} is ahead of {found.behind} by {number(low)} to {number(high)} "
        f"{unit}".rstrip()
        + " (95 % interval, valid at any time)."
    )
