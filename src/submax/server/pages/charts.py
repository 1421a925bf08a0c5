"""Numbers over time: shares of the arms, rewards and lift, as charts, tables and CSV show them."""

import csv
import io
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from submax.bandit.arms import Tally
from submax.bandit.durable import DurableBandit
from submax.bandit.reading import HOLDOUT, HOUR, PAUSED, SEGMENT_DECISIONS, Cell
from submax.core.checks import one_of
from submax.core.errors import NotFoundError
from submax.server.pages.formats import Shown, machine_time

DAY = 24 * HOUR
SPANS: dict[str, tuple[str, float, int]] = {
    "hour": ("1 hour", HOUR, 60),
    "day": ("1 day", DAY, HOUR),
    "week": ("7 days", 7 * DAY, HOUR),
    "month": ("30 days", 30 * DAY, 6 * HOUR),
    "year": ("1 year", 365 * DAY, 2 * DAY),
    "all": ("all", math.inf, HOUR),
}
"""The ranges that can be picked: their names, their lengths, and the seconds of an interval."""
MOST_INTERVALS = 250
MOST_LINES = 8
"""Choices that have a line of their own; the others are shown as one."""
DEVIATIONS = 1.959964
"""Standard errors on each side of the mean within which it is expected in 95 of 100 cases."""
OTHERS, OTHERS_COLOUR = "all others", 8
MOST_MARKS = 12


class Line(msgspec.Struct, frozen=True):
    """One line of a chart; ``low`` and ``high`` are the ends of its band, if it has one.

    ``colour`` is the number of its colour, which an arm keeps whatever else is shown.
    """

    name: str
    colour: int
    values: list[float | None]
    low: list[float | None] | None = None
    high: list[float | None] | None = None


class Chart(msgspec.Struct, frozen=True):
    """Lines over the same intervals, each ``seconds`` long, that begin at the times ``at``."""

    seconds: int
    at: list[float]
    lines: list[Line]


class Times(NamedTuple):
    """The cells of a bandit in the range that was picked, and when their intervals begin."""

    span: str
    seconds: int
    cells: list[Cell]
    at: list[float]


def slot_of(bandit: DurableBandit, slot: str | None) -> str:
    """The slot that was asked for, or the first one; empty if there is none."""
    slots = [one.name for one in bandit.menu.slots]
    if slot is None:
        return slots[0] if slots else ""
    if slot not in slots:
        raise NotFoundError(f"there is no slot {slot!r:.60}: the slots are {', '.join(slots)}")
    return slot


def cells_of(bandit: DurableBandit, span: str | None, slot: str = "") -> Times:
    """Sums by interval, choice and part; without a ``span`` in the shortest that has everything."""
    reader, now = bandit.read, bandit.store.now(bandit.read.declared.n)
    if span is None:
        span = _fitting(bandit, now)
    one_of("span", span, list(SPANS))
    _, length, seconds = SPANS[span]
    if span == "all":
        age = now - reader.declared.created
        seconds = HOUR * max(1, math.ceil(age / HOUR / MOST_INTERVALS))
    since = now - length
    if seconds < HOUR:
        start, cells = reader.recent(SEGMENT_DECISIONS, step=seconds, slot=slot)
        since = max(since, start)
    else:
        cells = reader.series(None if since == -math.inf else since, step=seconds, slot=slot)
    cells = [cell for cell in cells if cell.at > since - seconds]
    times = sorted({cell.at for cell in cells})[-MOST_INTERVALS:]
    at: list[float] = []
    if times:
        # An event far from the others must not make a chart of empty intervals.
        first = max(times[0], times[-1] - (MOST_INTERVALS - 1) * seconds)
        at = [first + number * seconds for number in range(int((times[-1] - first) / seconds) + 1)]
    return Times(span, seconds, cells, at)


def _fitting(bandit: DurableBandit, now: float) -> str:
    """The shortest range that has all decisions; rewards that still wait need a longer one."""
    oldest = bandit.store.select(
        "select at from decision where bandit = :bandit order by at limit 1",
        bandit=bandit.read.declared.n,
    )
    age = now - (oldest[0][0] if oldest else now)
    wait = bandit.settings.reward_wait
    return next(
        name
        for name, (_, length, seconds) in SPANS.items()
        if age <= length and (seconds >= HOUR or wait < length / 2)
    )


def share_chart(times: Times, choices: Sequence[str]) -> Chart:
    """The share of the decisions that each choice got; the least frequent ones are joined.

    Decisions that were held out, or made while the bandit was paused, do not count.
    """
    total: dict[float, float] = defaultdict(float)
    counts: dict[str, dict[float, float]] = {name: defaultdict(float) for name in choices}
    for cell in times.cells:
        if cell.part not in (HOLDOUT, PAUSED):
            total[cell.at] += cell.sums.decisions
            counts.setdefault(cell.choice, defaultdict(float))[cell.at] += cell.sums.decisions
    frequent = sorted(choices, key=lambda name: -sum(counts[name].values()))
    if len(choices) > MOST_LINES + 1:
        frequent = frequent[:MOST_LINES]

    def shares(names: Sequence[str]) -> list[float | None]:
        return [
            sum(counts[name].get(at, 0.0) for name in names) / total[at] if total.get(at) else None
            for at in times.at
        ]

    lines = [
        Line(name, colour, shares([name]))
        for colour, name in enumerate(choices)
        if name in frequent
    ]
    rest = [name for name in choices if name not in frequent]
    if rest:
        lines.append(Line(OTHERS, OTHERS_COLOUR, shares(rest)))
    return Chart(times.seconds, times.at, lines)


def reward_chart(times: Times, bounds: tuple[float, float] | None) -> Chart:
    """The mean reward of a decision by group, with 95 % bands that respect bounds of rewards."""
    least, most = bounds or (-math.inf, math.inf)

    def end(sums: Tally, deviations: float) -> float | None:
        if sums.mean is None or sums.standard_error is None:
            return None
        return min(max(sums.mean + deviations * sums.standard_error, least), most)

    lines = []
    groups = {"bandit": ("", "bandit"), "holdout": (HOLDOUT,), "control": ("control",)}
    for colour, (name, parts) in enumerate(groups.items()):
        found: dict[float, list[Tally]] = defaultdict(list)
        for cell in times.cells:
            if cell.part in parts:
                found[cell.at].append(cell.sums)
        known = [Tally.total(found.get(at, ())) for at in times.at]
        if any(one.known for one in known):
            low, high = ([end(one, side * DEVIATIONS) for one in known] for side in (-1, 1))
            lines.append(Line(name, colour, [one.mean for one in known], low, high))
    return Chart(times.seconds, times.at, lines)


def lift_chart(bandit: DurableBandit, since: float = -math.inf) -> Chart:
    """The lift as it was known over time, with its interval, over each group."""
    points = [one for one in bandit.read.lift_history() if one.at >= since]
    at = sorted({one.at for one in points})
    lines = []
    for colour, against in enumerate(("", "holdout", "control")):
        known = {one.at: one for one in points if one.against == against}
        if known:
            listed = [known.get(time) for time in at]
            lines.append(
                Line(
                    f"over the {against}",
                    colour,
                    [one and one.estimate for one in listed],
                    [one and one.low for one in listed],
                    [one and one.high for one in listed],
                )
            )
    return Chart(round(at[1] - at[0]) if len(at) > 1 else 60, at, lines)


def marks(bandit: DurableBandit, at: Sequence[float]) -> list[Shown]:
    """Changes by people within the times of a chart, oldest first; at most the newest dozen.

    Charts mark each by its number.
    """
    if not at:
        return []
    found = [one for one in bandit.audit(100) if one.action != "declare" and one.at >= at[0]]
    return [
        Shown(
            number=number, at=one.at, what=f"{one.action} {one.detail}".strip()[:120], who=one.name
        )
        for number, one in enumerate(found[:MOST_MARKS][::-1], start=1)
    ]


def numbers_csv(bandit: DurableBandit, span: str | None = None, slot: str | None = None) -> str:
    """The cells of a range: interval, choice, group, decisions, and what their rewards were."""
    slot = slot_of(bandit, slot)
    times, text = cells_of(bandit, span, slot), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["from", "seconds", "choice", "group", "decisions", "matured", "rewarded", "reward",
         "mean_reward", "standard_error"]
    )  # fmt: skip
    for cell in times.cells:
        sums = cell.sums
        writer.writerow(
            [
                machine_time(cell.at),
                times.seconds,
                _harmless(cell.choice or slot),
                cell.part or "bandit",
                round(sums.decisions),
                round(sums.known),
                round(sums.rewarded),
                f"{sums.reward:.10g}",
                "" if sums.mean is None else f"{sums.mean:.6g}",
                "" if sums.standard_error is None else f"{sums.standard_error:.6g}",
            ]
        )
    return text.getvalue()


def _harmless(name: str) -> str:
    """A name that a spreadsheet does not take for a formula."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name
