"""Arms for which no reward has come for so long that they may be broken."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.live.bandits.bandit import LiveBandit
from submax.live.monitoring.rollups.rollups import Rollups
from submax.live.monitoring.rollups.tier import Tier
from submax.web.dashboard.formats import duration, percent

RARE = 0.001
"""The chance of a wrong sentence about any arm at one look, if arms earn as they did before."""


class Silence(NamedTuple):
    """An arm without any success in its last ``decisions``.

    ``seconds`` is how long ago the last success was, None if there never was one.
    ``expected`` is the share of successes that it would be compared with.
    """

    choice: str
    decisions: int
    seconds: float | None
    expected: float

    @property
    def sentence(self) -> str:
        """What to look at, in words."""
        if self.seconds is None:
            return (
                f"No reward has ever come for {self.choice}, in {self.decisions:,} decisions; the "
                f"other arms get one in at least {percent(self.expected)}. It may be broken."
            )
        return (
            f"No reward has come for {self.choice} for {duration(self.seconds)}, in its last "
            f"{self.decisions:,} decisions; before, at least {percent(self.expected)} got one. It "
            "may be broken."
        )


def silent_arms(bandit: LiveBandit, rollups: Rollups | None) -> list[Silence]:
    """Active arms without a success for so long that this is hardly chance.

    A success is a reward of 1. If an arm earns with the chance p, n decisions in a row without a
    success have the chance (1 − p)ⁿ. Here p is the lowest success rate of all arms that earn
    something, or what the arm itself earned before, if that is less: so that an arm is not called
    broken because it is worse than others. For other rewards nothing is said.
    """
    if rollups is None or not bandit.menu.plain or bandit.settings.rewards["kind"] != "binary":
        return []
    choices = bandit.menu.slots[0].choices
    matured, rewards = _totals(rollups.tiers[-1], len(choices))
    earning = rewards > 0
    if not earning.any():
        return []
    lowest = float((rewards[earning] / matured[earning]).min())
    decisions, seconds = _silences(rollups, matured, earning)
    # An arm is compared with others, of which at least one must earn something.
    compared = (earning.sum() - earning > 0) & (matured > 0)
    rare = (1 - lowest) ** decisions < RARE / len(choices)
    return [
        Silence(
            choices[one].name,
            int(decisions[one]),
            float(seconds[one]) if earning[one] else None,
            lowest,
        )
        for one in np.flatnonzero(compared & rare).tolist()
        if choices[one].status == "active"
    ]


def _silences(rollups: Rollups, matured: Floats, earning: Booleans) -> tuple[Floats, Floats]:
    """The matured decisions of each choice since its last success, and how long ago that was.

    They are taken from the finest tier that knows of a success.
    """
    decisions, seconds = np.where(earning, 0.0, matured), np.zeros(len(matured))
    unknown = earning.copy()
    for tier in rollups.tiers:
        if not unknown.any():
            break
        # Keys of other slots are larger than all of these.
        wanted = np.append(unknown, False)[np.minimum(tier.choices.rest, len(matured))]
        number, at = tier.choices.rest[wanted], tier.choices.leading[wanted]
        rows = tier.choices.rows[wanted]
        last, newest = np.full(len(matured), -1), np.full(len(matured), -1)
        # Cells are in the order of time, so that the last one of a choice stays.
        success = rows[:, 2] > 0
        last[number[success]], newest[number] = at[success], at
        after = np.where(at > last[number], rows[:, 1], 0.0)
        since = np.bincount(number, after, len(matured))
        found = unknown & (last >= 0)
        decisions = np.where(found, since, decisions)
        seconds = np.where(found, (newest - last) * tier.resolution.seconds, seconds)
        unknown &= ~found
    return decisions, seconds


def _totals(tier: Tier, choices: int) -> tuple[Floats, Floats]:
    """The matured decisions and rewards of each choice of the first slot."""
    known = tier.choices.rest < choices
    number, rows = tier.choices.rest[known], tier.choices.rows[known]
    matured = np.bincount(number, rows[:, 1], choices).astype(np.float64, copy=False)
    return matured, np.bincount(number, rows[:, 2], choices).astype(np.float64, copy=False)
