"""Arms for which no reward has come for so long that they may be broken."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.dashboard.formats import duration, percent
from submax.live.bandit import Bandit
from submax.live.rollups.rollups import Rollups
from submax.live.rollups.tier import Tier

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


def silent_arms(bandit: Bandit, rollups: Rollups | None) -> list[Silence]:
    """Active arms without a success for so long that this is hardly chance.

    A success is a reward of 1. If an arm earns with the chance p, n decisions in a row without a
    success have the chance (1 − p)ⁿ. Here p is the lowest success rate of all arms that earn
    something, or what the arm itself earned before, if that is less: so that an arm is not called
    broken because it is worse than others. For other rewards nothing is said.
    """
    if rollups is None or not bandit.menu.plain or bandit.settings.rewards["kind"] != "binary":
        return []
    choices = bandit.menu.slots[0].choices
    # Days have all time; minutes say most precisely when the last success came.
    days = _totals(rollups.tiers[-1], len(choices))
    rates = [reward / matured for matured, reward in days if reward > 0]
    if not rates:
        return []
    found = []
    for number, choice in enumerate(choices):
        matured, reward = days[number]
        if choice.status != "active" or not matured or len(rates) - (reward > 0) < 1:
            continue
        silence = _silence(rollups, number, choice.name, min(rates), reward)
        if (1 - silence.expected) ** silence.decisions < RARE / len(choices):
            found.append(silence)
    return found


def _silence(rollups: Rollups, number: int, name: str, lowest: float, reward: float) -> Silence:
    """How long an arm has been without a success, in the finest tier that knows."""
    if not reward:
        matured = sum(_of(rollups.tiers[-1], number)[1][:, 1].tolist())
        return Silence(name, int(matured), None, lowest)
    for tier in rollups.tiers:
        at, rows = _of(tier, number)
        successes = np.flatnonzero(rows[:, 2] > 0)
        if len(successes):
            last = int(successes[-1])
            ago = float((at[-1] - at[last]) * tier.resolution.seconds)
            return Silence(name, int(rows[last + 1 :, 1].sum()), ago, lowest)
    return Silence(name, 0, None, lowest)


def _of(tier: Tier, number: int) -> tuple[Integers, Floats]:
    """The intervals of a choice of the first slot, and its decisions, matured ones and rewards."""
    chosen = tier.choices.rest == number
    return tier.choices.leading[chosen], tier.choices.rows[chosen]


def _totals(tier: Tier, choices: int) -> list[tuple[float, float]]:
    """The matured decisions and rewards of each choice of the first slot."""
    known = tier.choices.rest < choices
    number = tier.choices.rest[known]
    matured, reward = (
        np.bincount(number, tier.choices.rows[known, column], choices).tolist() for column in (1, 2)
    )
    return list(zip(matured, reward, strict=True))
