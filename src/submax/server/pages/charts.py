"""Numbers over time: shares of the arms, rewards and lift, as charts and tables show them."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup

from submax.bandit.arms import Tally
from submax.bandit.durable import DurableBandit
from submax.bandit.reading import HOLDOUT, HOUR, PAUSED, SEGMENT_DECISIONS, Cell
from submax.core.checks import one_of
from submax.core.errors import NotFoundError
from submax.server.keys import time_text
from submax.server.pages.formats import Shown, reward

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
MOST_LINES = 8  # choices that have a line of their own; the others are shown as one
DEVIATIONS = 1.959964  # standard errors within which the mean is expected in 95 of 100 cases
OTHERS, OTHERS_COLOUR = "all others", 8
MOST_MARKS = 12


def slot_of(bandit: DurableBandit, slot: str | None) -> str:
    """The slot that was asked for, or the first one; empty if there is none."""
    slots = [one.name for one in bandit.menu.slots]
    if slot is None:
        return slots[0] if slots else ""
    if slot not in slots:
        raise NotFoundError(f"there is no slot {slot!r:.60}: the slots are {', '.join(slots)}")
    return slot


def cells_of(bandit: DurableBandit, span: str | None, slot: str = "") -> Shown:
    """Sums by interval, choice and part; without a ``span`` in the shortest that has everything.

    ``at`` are the times at which the intervals begin, each of so many ``seconds``.
    """
    reader = bandit.read
    now = bandit.store.now(reader.declared.n)
    age, wait = now - reader.declared.created, bandit.settings.reward_wait
    if span is None:
        # Rewards that still wait need a longer range than the decisions.
        fits = (age <= length and (seconds >= HOUR or wait < length / 2)
                for _, length, seconds in SPANS.values())  # fmt: skip
        span = next(name for name, fit in zip(SPANS, fits, strict=True) if fit)
    one_of("span", span, list(SPANS))
    _, length, seconds = SPANS[span]
    if span == "all":
        seconds = HOUR * max(1, math.ceil(age / HOUR / MOST_INTERVALS))
    since = now - length
    if seconds < HOUR:
        start, cells = reader.recent(SEGMENT_DECISIONS, step=seconds, slot=slot)
        since = max(since, start)
    else:
        cells = reader.series(None if since == -math.inf else since, step=seconds, slot=slot)
    cells = [cell for cell in cells if cell.at > since - seconds]
    at: list[float] = []
    if times := sorted({cell.at for cell in cells})[-MOST_INTERVALS:]:
        # An event far from the others must not make a chart of empty intervals.
        first = max(times[0], times[-1] - (MOST_INTERVALS - 1) * seconds)
        at = [first + number * seconds for number in range(int((times[-1] - first) / seconds) + 1)]
    return Shown(span=span, seconds=seconds, cells=cells, at=at)


def own_cells(cells: Iterable[Cell]) -> list[Cell]:
    """Those of decisions that were not held out, nor made while the bandit was paused."""
    return [cell for cell in cells if cell.part not in (HOLDOUT, PAUSED)]


def _line(name: str, colour: int, values: list[float | None], *ends: list[float | None]) -> Shown:
    """A line of a chart, perhaps with the ends of its band; an arm keeps its colour."""
    low, high = ends or (None, None)
    return Shown(name=name, colour=colour, values=values, low=low, high=high)


def share_chart(times: Shown, choices: Sequence[str]) -> Shown:
    """The share of the decisions that each choice got; the least frequent ones are joined."""
    total: dict[float, float] = defaultdict(float)
    counts: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    for cell in own_cells(times.cells):
        total[cell.at] += cell.sums.decisions
        counts[cell.choice][cell.at] += cell.sums.decisions
    frequent = sorted(choices, key=lambda name: -sum(counts[name].values()))
    joined = set(frequent[MOST_LINES:] if len(choices) > MOST_LINES + 1 else ())

    def shares(names: Iterable[str]) -> list[float | None]:
        sums = [sum(counts[name].get(at, 0.0) for name in names) for at in times.at]
        pairs = zip(sums, times.at, strict=True)
        return [one / total[at] if total.get(at) else None for one, at in pairs]

    lines = [
        _line(name, colour, shares([name]))
        for colour, name in enumerate(choices)
        if name not in joined
    ]
    if joined:
        lines.append(_line(OTHERS, OTHERS_COLOUR, shares(joined)))
    return Shown(seconds=times.seconds, at=times.at, lines=lines)


def reward_chart(times: Shown, bounds: tuple[float, float] | None) -> Shown:
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
            band = ([end(one, side * DEVIATIONS) for one in known] for side in (-1, 1))
            lines.append(_line(name, colour, [one.mean for one in known], *band))
    return Shown(seconds=times.seconds, at=times.at, lines=lines)


def lift_chart(bandit: DurableBandit, since: float = -math.inf) -> Shown:
    """The lift as it was known over time, with its interval, over each group."""
    points = [one for one in bandit.read.lift_history() if one.at >= since]
    at = sorted({one.at for one in points})
    lines = []
    for colour, against in enumerate(("", "holdout", "control")):
        known = {one.at: one for one in points if one.against == against}
        if known:
            listed = [known.get(time) for time in at]
            columns = ([getattr(one, word, None) for one in listed]
                       for word in ("estimate", "low", "high"))  # fmt: skip
            lines.append(_line(f"over the {against}", colour, *columns))
    return Shown(seconds=round(at[1] - at[0]) if len(at) > 1 else 60, at=at, lines=lines)


def marks(bandit: DurableBandit, at: Sequence[float]) -> list[Shown]:
    """Changes by people within the times of a chart, oldest first; at most the newest dozen.

    Charts mark each by its number.
    """
    found = [one for one in bandit.audit(100) if at and one.action != "declare" and one.at >= at[0]]
    return [
        Shown(
            number=number, at=one.at, what=f"{one.action} {one.detail}".strip()[:120], who=one.name
        )
        for number, one in enumerate(found[:MOST_MARKS][::-1], start=1)
    ]


def chart_rows(at: Sequence[float], lines: Sequence[Any], unit: str) -> Markup:
    """The rows of the table under a chart: the time, and the values and bands of each line.

    A macro of a template would take ten times as long for thousands of cells. There are only
    numbers, so nothing has to be escaped.
    """
    columns = [one for line in lines for one in (line.values, line.low, line.high) if one]
    rows = []
    for time, *values in zip(at, *columns, strict=True):
        cells = (
            f'<td data-value="{"" if one is None else f"{one:.6g}"}">{reward(one, unit)}</td>'
            for one in values
        )
        shown = f'<time datetime="{time_text(time)}">{time_text(time)}</time>'
        head = f'<th scope="row" data-value="{time:.10g}">{shown}</th>'
        rows.append(f"<tr>{head}{''.join(cells)}</tr>")
    return Markup("\n".join(rows))
