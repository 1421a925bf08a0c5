"""Arms whose rewards come later than those of other arms, and what that does to the numbers."""

import math
from statistics import NormalDist

import msgspec
import numpy as np

from submax.bandit.settings import Settings
from submax.core.arrays import Booleans, Floats
from submax.live.bandits.bandit import LiveBandit
from submax.live.monitoring.rollups.choice_delays import MOST_CHOICES, DelaySums
from submax.live.monitoring.rollups.delay_bins import median_delays
from submax.live.monitoring.rollups.rollups import Rollups
from submax.live.operating.arm_status import wilson_interval
from submax.web.dashboard.formats import duration, percent

RARE = 0.001
"""The chance of a wrong sentence about any arm at one look, if all arms are equally late."""
FEWEST = 30
"""Rewards of an arm, and of all others, below which nothing is said: shares are compared by a
normal approximation."""
MOST_SHOWN = 20
"""Arms whose delays are shown."""
LEAST_LATE = 0.05
"""The share of late rewards from which on an arm is named."""


class ArmDelay(msgspec.Struct, frozen=True, kw_only=True):
    """How long the rewards of an arm take.

    ``rewards`` is how many have come, ``median`` the seconds that half of them exceed, and ``late``
    the share that came too late to be learned from, with its 95 % interval. ``of_others`` is the
    median of all other arms. ``notable`` says that the arm is later than the others by more than
    chance explains, and late enough to make its numbers wrong.
    """

    choice: str
    rewards: float
    median: float
    late: float
    late_low: float
    late_high: float
    of_others: float | None
    notable: bool


def arm_delays(
    bandit: LiveBandit, rollups: Rollups | None, *, notable: bool = False
) -> list[ArmDelay]:
    """The delays of the slowest arms, or of all that are ``notable``, the slowest first.

    If the action has slots there are none, because a reward is about all slots together.
    """
    if rollups is None or not bandit.menu.plain:
        return []
    sums, others = rollups.delays.sums, rollups.delays.sums_of_others
    choices, total = bandit.menu.slots[0].choices, sums.total
    timed = choices[: min(len(total), MOST_CHOICES)]
    active = np.array([one.status == "active" for one in timed], np.bool_)
    found_notable = _notable(bandit.settings, sums, others)[: len(timed)] & active
    wanted = np.flatnonzero(found_notable if notable else total[: len(timed)] > 0)
    median, of_others = median_delays(sums.bins[wanted]), median_delays(others.bins[wanted])
    found = []
    order = np.argsort(-median, kind="stable").tolist()
    for place in order if notable else order[:MOST_SHOWN]:
        one = int(wanted[place])
        late = float(sums.late[one] / total[one])
        low, high = wilson_interval(late, float(sums.effective[one]))
        found.append(
            ArmDelay(
                choice=choices[one].name,
                rewards=float(total[one]),
                median=float(median[place]),
                late=late,
                late_low=low,
                late_high=high,
                of_others=float(of_others[place]) if np.isfinite(of_others[place]) else None,
                notable=bool(found_notable[one]),
            )
        )
    return found


def late_sentence(delay: ArmDelay, settings: Settings) -> str:
    """That the rewards of an arm come late, how late, and what is wrong with its numbers then."""
    pace = f"half of them after {duration(delay.median, 2)} or more"
    if delay.of_others is not None:
        pace += f", and half of those of the other arms after {duration(delay.of_others, 2)}"
    if not math.isfinite(settings.longest_wait):
        return (
            f"Rewards of {delay.choice} come later than others: {pace}. A decision counts when its "
            f"reward comes, so the newest decisions for {delay.choice} are missing in all numbers."
        )
    word = "reward_wait" if settings.reward_wait > 0 else "no_reward_after"
    return (
        f"Rewards of {delay.choice} come late: {pace}. {percent(delay.late, 2)} of them come after "
        f"{word} ({duration(settings.longest_wait)}) and are not learned from, so "
        f"{_consequence(delay, settings)}."
    )


def _consequence(delay: ArmDelay, settings: Settings) -> str:
    """What is wrong with the reward rate of an arm whose late rewards do not count."""
    if settings.default_reward is None:
        return f"the reward rate of {delay.choice} is that of its early rewards"
    if settings.default_reward != 0 or delay.late_high > 0.9:
        return f"the reward rate of {delay.choice} does not say what it earns"
    low, high = 1 / (1 - delay.late_low), 1 / (1 - delay.late_high)
    return (
        f"{delay.choice} earns more than its reward rate says, about {low:.1f} to {high:.1f} times "
        "as much"
    )


def _notable(settings: Settings, sums: DelaySums, others: DelaySums) -> Booleans:
    """Which arms are late, so that their numbers are wrong, and later than the others.

    If decisions wait for rewards for a limited time, the share of rewards after that time is
    compared; else the share of rewards that take longer than nine tenths of the others'.
    """
    enough = (sums.effective >= FEWEST) & (others.effective >= FEWEST)
    if math.isfinite(settings.longest_wait):
        late, of_others, least = sums.late, others.late, LEAST_LATE
    else:
        late, of_others = _slower(sums, others)
        least = 0.5
    share = late / np.maximum(sums.total, 1.0)
    share_of_others = of_others / np.maximum(others.total, 1.0)
    far = _deviations(share, share_of_others, sums.effective, others.effective)
    limit = NormalDist().inv_cdf(1 - RARE / max(len(share), 1))
    return enough & (share >= least) & (share >= 2 * share_of_others) & (far > limit)


def _slower(sums: DelaySums, others: DelaySums) -> tuple[Floats, Floats]:
    """The rewards of each arm, and of the others, above the bin with the others' 0.9 quantile."""
    reached = np.cumsum(others.bins, axis=1) >= 0.9 * others.total[:, None]
    above = np.cumsum(reached, axis=1) > 1
    return (sums.bins * above).sum(axis=1), (others.bins * above).sum(axis=1)


def _deviations(one: Floats, other: Floats, count: Floats, other_count: Floats) -> Floats:
    """How many standard errors one share is above another."""
    count, other_count = np.maximum(count, 1.0), np.maximum(other_count, 1.0)
    pooled = (one * count + other * other_count) / (count + other_count)
    error = np.sqrt(pooled * (1 - pooled) * (1 / count + 1 / other_count))
    far: Floats = (one - other) / np.maximum(error, 1e-12)
    return far
