"""Segments: what is shown to whom, and with what result, by one field or two crossed."""

import math
from collections.abc import Sequence

import msgspec

from submax.bandit.arms import ChoiceTally, weighted_rate
from submax.bandit.durable import DurableBandit
from submax.bandit.reading import SEGMENT_DECISIONS, Segment, SegmentCell
from submax.core.errors import InputError

FEWEST = 30
"""Decisions in a segment, or rows of a choice there, below which nothing is said about them."""
DIFFERENT = 0.1
"""The least difference of shares that is worth a sentence: half of the sum of all differences."""
MOST_FIELDS = 8
"""Context fields among which the most telling one is looked for, because each takes a query."""
LOOKED_AT = 2_000
"""Decisions that are looked at for each of these fields."""
MOST_VALUES = 12
"""Values of a field that have a row or a column; those with the fewest decisions are left out."""


class SegmentArm(msgspec.Struct, frozen=True):
    """A choice in a segment: its share, and its mean reward with a 95 % interval for one look."""

    choice: str
    colour: int
    decisions: int
    share: float
    rate: float | None
    low: float | None
    high: float | None


class SegmentBox(msgspec.Struct, frozen=True):
    """A segment: what is shown there most, what earns most, and all choices.

    ``winner`` is the choice with the highest mean reward; it is ``clear`` if the interval of its
    difference from every other choice lies above 0. ``choice`` is empty if there is no decision.
    """

    choice: str = ""
    colour: int = 0
    share: float | None = None
    decisions: int = 0
    mean: float | None = None
    winner: str = ""
    clear: bool = False
    arms: list[SegmentArm] = []


class SegmentRow(msgspec.Struct, frozen=True):
    """The segments with one value of the first field."""

    name: str
    cells: list[SegmentBox]


class Crossed(msgspec.Struct, frozen=True):
    """Segments by one field, or by two crossed; ``columns`` are values of the second."""

    first: str
    second: str
    columns: list[str]
    rows: list[SegmentRow]
    decisions: int
    left_out: int


def crossed(
    bandit: DurableBandit,
    first: str,
    second: str | None,
    *,
    slot: str = "",
    decisions: int = SEGMENT_DECISIONS,
) -> Crossed:
    """What was shown in which segments, by one field or two crossed."""
    if first == second:
        raise InputError(
            f"the field {first!r:.60} was given twice: cross it with another one, or with none",
            parameter="second",
        )
    found = bandit.read.segments(first, second, slot=slot, decisions=decisions)
    rows = _frequent(found, 0)
    columns = _frequent(found, 1) if second else [""]
    by_values = {one.values: one for one in found}
    colours = colours_of(bandit, slot)
    table = [
        SegmentRow(
            row,
            [
                box(bandit, by_values.get((row, column) if second else (row,)), colours)
                for column in columns
            ],
        )
        for row in rows
    ]
    total = sum(one.decisions for one in found)
    shown = sum(cell.decisions for row in table for cell in row.cells)
    return Crossed(first, second or "", columns if second else [], table, total, total - shown)


def _frequent(segments: Sequence[Segment], place: int) -> list[str]:
    """The most frequent values of a field, in the order of their names or numbers."""
    counts: dict[str, int] = {}
    for one in segments:
        counts[one.values[place]] = counts.get(one.values[place], 0) + one.decisions
    frequent = sorted(counts, key=lambda value: -counts[value])[:MOST_VALUES]
    return sorted(frequent, key=_order)


def _order(label: str) -> tuple[float, float, str]:
    """Bins of numbers by their edges (“below 3” first), then categories by their names."""
    word, _, rest = label.partition(" ")
    try:
        number = float(rest if word == "below" else word)
    except ValueError:
        return math.inf, 0.0, label
    return number, 0.0 if word == "below" else 1.0, label


def colours_of(bandit: DurableBandit, slot: str) -> dict[str, int]:
    """The number of the colour of each choice, which never changes: its place in the menu."""
    for one in bandit.menu.slots:
        if one.name == slot:
            return {choice.name: number for number, choice in enumerate(one.choices)}
    return {}


def box(bandit: DurableBandit, segment: Segment | None, colours: dict[str, int]) -> SegmentBox:
    """A segment as a page shows it."""
    if segment is None or not segment.decisions:
        return SegmentBox()
    scale = bandit.settings.scale
    arms = []
    for cell in segment.cells:
        rate, low, high = weighted_rate(_tally(cell), scale)
        count = round(cell.sums.decisions)
        arms.append(
            SegmentArm(
                cell.choice, colours.get(cell.choice, 8), count, count / segment.decisions,
                rate, low, high,
            )
        )  # fmt: skip
    known = {cell.choice: cell.sums.known for cell in segment.cells}
    enough = [one for one in arms if known[one.choice] >= FEWEST and one.rate is not None]
    winner = max(enough, key=lambda one: one.rate or 0.0, default=None)
    others = [one for one in arms if one is not winner and one.rate is not None]
    return SegmentBox(
        arms[0].choice,
        arms[0].colour,
        arms[0].share,
        segment.decisions,
        segment.mean,
        "" if winner is None else winner.choice,
        winner is not None and bool(others) and all(_above(winner, one) for one in others),
        arms,
    )


def _tally(cell: SegmentCell) -> ChoiceTally:
    """The sums as those of rows with equal weights: within a segment that is fair enough."""
    one = cell.sums
    weights = one.known, one.known, one.reward, one.reward, one.squares
    return ChoiceTally(round(one.decisions), round(one.known), one.reward, one.squares, weights)


def _above(one: SegmentArm, other: SegmentArm) -> bool:
    """Whether the 95 % interval of the difference of two rates lies above 0.

    Its lower end follows from the intervals of the two (Newcombe 1998, method 10).
    """
    if one.rate is None or one.low is None or other.rate is None or other.high is None:
        return False
    return one.rate - other.rate > math.hypot(one.rate - one.low, other.high - other.rate)


def distance(segments: Sequence[Segment]) -> float:
    """How differently segments are decided: the mean distance of their shares from the average."""
    total: dict[str, float] = {}
    for one in segments:
        for cell in one.cells:
            total[cell.choice] = total.get(cell.choice, 0.0) + cell.sums.decisions
    count = sum(total.values())
    if not count:
        return 0.0
    far = 0.0
    for one in segments:
        shares = {cell.choice: cell.sums.decisions / one.decisions for cell in one.cells}
        apart = sum(abs(shares.get(name, 0.0) - all_ / count) for name, all_ in total.items())
        far += one.decisions * apart / 2
    return far / count


def most_different(
    bandit: DurableBandit, decisions: int, slot: str | None = None
) -> tuple[str, str | None] | None:
    """The field by whose values choices differ most, alone or crossed with another; or None.

    A second field is taken only if choices differ more by both than by the first alone.
    """
    slots = [one.name for one in bandit.menu.slots]
    if slot is None:
        slot = slots[0] if slots else ""
    wanted, names = min(decisions, LOOKED_AT), bandit.settings.context.names[:MOST_FIELDS]

    def far(first: str, second: str | None = None) -> float:
        return distance(bandit.read.segments(first, second, slot=slot, decisions=wanted))

    alone = max(((far(name), name) for name in names), default=(0.0, ""))
    pairs = max(((far(alone[1], name), name) for name in names if name != alone[1]), default=alone)
    if pairs[0] > alone[0] + DIFFERENT / 2 and pairs[0] >= DIFFERENT:
        return alone[1], pairs[1]
    return (alone[1], None) if alone[0] >= DIFFERENT else None
