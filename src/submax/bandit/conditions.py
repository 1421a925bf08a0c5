"""What deserves an alarm: drops, arms that are silent or late, failures."""

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import scipy

from submax.bandit.arms import Tally
from submax.bandit.reading import HOUR, RARE, BanditReader
from submax.core.arrays import Floats
from submax.core.summary import counted, number
from submax.statistics.boundary import mixture_boundary

WATCHED_HOURS = 30 * 24
FALSE_ALARMS = 0.01
"""The chance of a false alarm about a mean within 100,000 decisions."""
PLANNED_DECISIONS = 1000
"""The number of decisions about which an interval is narrowest."""
FEWEST_DECISIONS = 100
"""Decisions on either side of an hour below which means are not compared."""
MANY_FAILURES = 3
"""Fits in a row that must fail before that is a condition."""


class Condition(msgspec.Struct, frozen=True):
    """Something that an operator should look at, as a ``sentence`` and as ``values``.

    ``kind`` is ``reward-rate``, ``missing-rewards``, ``refits``, ``silent-arm`` or ``late-arm``;
    ``subject`` is the arm that it is about.
    """

    kind: str
    sentence: str
    values: dict[str, float]
    subject: str = ""


def conditions(reader: BanditReader, failed_refits: int = 0, reason: str = "") -> list[Condition]:
    """What is wrong now; ``failed_refits`` is how many fits in a row have failed."""
    late = [
        Condition(
            "late-arm",
            f"{one.choice!r} is rewarded late: median {one.median:.3g} s"
            + ("" if one.of_others is None else f", other arms {one.of_others:.3g} s")
            + f"; {100 * one.late:.2g} % of its rewards are too late to be learned from",
            {"median": one.median, "late": one.late},
            one.choice,
        )
        for one in reader.delays()
        if one.notable
    ]
    # All rewards of an arm may be late: then the arm is late, and not broken.
    named = {one.subject for one in late}
    silent = [one for one in _silent_arms(reader) if one.subject not in named]
    found = [*_drops(reader), *silent, *late]
    if failed_refits >= MANY_FAILURES:
        sentence = f"{failed_refits} fits in a row have failed, so an older version is still live"
        found.append(Condition("refits", f"{sentence}: {reason}", {"failures": failed_refits}))
    return found


def _drops(reader: BanditReader) -> Iterator[Condition]:
    """Whether the reward of a decision, or the share with a reward, has dropped.

    An interval begins at every hour, and holds the mean since then at all times together but
    for its share of FALSE_ALARMS; the interval before an hour must not be above the one
    after it. It holds for large samples.
    """
    last = math.floor(reader.now() / HOUR)
    each = reader.own_sums("hour", ["bucket"], first=last - WATCHED_HOURS, slot="").values()
    for kind, what, total, squares in (
        ("reward-rate", "the mean reward per decision", "reward", "squares"),
        ("missing-rewards", "the share of decisions with a reward", "rewarded", "rewarded"),
    ):
        rows = [[one.known, getattr(one, total), getattr(one, squares)] for one in each]
        drop = _dropped(np.array(rows).reshape(-1, 3).T, FALSE_ALARMS)
        if drop is not None:
            before, now, decisions = drop
            yield Condition(
                kind,
                f"{what} has dropped from above {before:.4g} to below {now:.4g} (last "
                f"{decisions:,} decisions)",
                {"before": before, "now": now, "decisions": float(decisions)},
            )


def _dropped(hours: Floats, error: float) -> tuple[float, float, int] | None:
    """Whether a mean has dropped at an hour: its lower end before, its upper end since.

    ``hours [3, n]`` are counts, sums and sums of squares.
    """
    error /= 2 * WATCHED_HOURS
    before = np.cumsum(hours, axis=1)
    after = before[:, -1:] - before
    best = None
    # The newest hours one by one, then ever longer times.
    place, step = before.shape[1] - 2, 1
    while place >= 0:
        low, high = _ends(before[:, place], error)[0], _ends(after[:, place], error)[1]
        if low > high and (best is None or low - high > best[0] - best[1]):
            best = low, high, round(float(after[0, place]))
        place, step = place - step, step + step // 4 + 1
    return best


def _ends(sums: Floats, error: float) -> tuple[float, float]:
    """An interval for the mean that holds at all times, for large samples."""
    count, total, squares = sums.tolist()
    if count < FEWEST_DECISIONS:
        return -math.inf, math.inf
    mean = total / count
    deviation = math.sqrt(max(squares / count - mean**2, 1e-12))
    half = float(deviation * mixture_boundary(count, error, 0.0, PLANNED_DECISIONS) / count)
    return mean - half, mean + half


def _chance_of_none(arm: Tally, decisions: float) -> float:
    """The chance that so many more decisions of an arm earn nothing; its rate is uncertain."""
    earned, failed, betaln = 1 + arm.reward, 1 + arm.known - arm.reward, scipy.special.betaln
    return math.exp(betaln(earned, failed + decisions) - betaln(earned, failed))


def _silent_arms(reader: BanditReader) -> Iterator[Condition]:
    """Active arms without a success for so long that this is hardly chance.

    If an arm earns with the chance p, n decisions in a row without a success have the chance
    (1 − p)ⁿ. Here p is the success rate of an arm that earns something, as uncertain as it is: with
    s successes in m decisions it has the distribution Beta(1 + s, 1 + m − s), under which the mean
    of (1 − p)ⁿ is B(1 + s, 1 + m − s + n) / B(1 + s, 1 + m − s). The arm with the largest of these
    chances counts, so an arm is not called broken because it is worse than others.
    """
    if not reader.menu.plain or reader.settings.rewards["kind"] != "binary":
        return
    by_arm = defaultdict[str, list[tuple[int, Tally]]](list)
    for (name, hour), sums in reader.own_sums("hour", ["choice", "bucket"]).items():
        by_arm[name].append((hour, sums))
    totals = {name: Tally.total(sums for _, sums in rows) for name, rows in by_arm.items()}
    rates: dict[str, Any] = {name: one.mean for name, one in totals.items() if one.reward > 0}
    choices = reader.menu.slots[0].choices
    for name in (one.name for one in choices if one.status == "active"):
        rows = by_arm.get(name)
        if not rows or not rates.keys() - {name}:
            continue
        last = max((hour for hour, sums in rows if sums.reward > 0), default=None)
        silent = sum(sums.known for hour, sums in rows if last is None or hour > last)
        lowest = min(rates.values())
        chance = max(_chance_of_none(totals[one], silent) for one in rates)
        if chance >= RARE / len(choices):
            continue
        often = f"at least {number(min(100 * lowest, 99), 2)} % of the time"
        lacks = "never been rewarded"
        if last is not None:
            lacks = f"not been rewarded for {counted(rows[-1][0] - last, 'hour')},"
        yield Condition(
            "silent-arm",
            f"{name!r} has {lacks} in {counted(round(silent), 'decision')}, while arms that earn "
            f"anything are rewarded {often if lowest < 1 else 'every time'}: check that "
            "it works",
            {"decisions": silent, "expected": lowest},
            name,
        )
