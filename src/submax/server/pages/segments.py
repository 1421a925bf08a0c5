"""The page of arms and segments: what each choice earns, and what is shown to whom."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from submax.bandit.durable import DurableBandit
from submax.bandit.reading import SEGMENT_DECISIONS, Segment
from submax.core.errors import InputError
from submax.server.pages.charts import slot_of
from submax.server.pages.comparing import comparison, is_personalised, unit_of
from submax.server.pages.formats import Shown, sentence

FEWEST = 30  # rows of a choice in a segment below which nothing is said about it
DIFFERENT = 0.1
"""The least difference of shares that is worth a sentence: half of the sum of all differences."""
MOST_FIELDS, LOOKED_AT = 8, 2_000
"""Context fields among which the most telling one is looked for, because each takes a query, and
decisions that are looked at for each."""
MOST_VALUES = 12  # values of a field that have a row or a column, the most frequent ones
MOST_ARMS = 100  # choices on the page, the most frequent ones, so a browser shows it quickly
NOTES = {"silent-arm": "no rewards", "late-arm": "late rewards"}
"""What a condition says about an arm, in two words."""


def arms_page(
    bandit: DurableBandit,
    slot: str | None = None,
    first: str | None = None,
    second: str | None = None,
) -> Shown:
    """What each choice earns, and segments by the fields ``first`` and ``second``.

    Without ``first``, by the field by which choices differ most, crossed with the next one.
    """
    slots, slot = [one.name for one in bandit.menu.slots], slot_of(bandit, slot)
    arms = [one for one in bandit.arms() if one.slot == slot] if slots else []
    personalised, leader = is_personalised(bandit), ""
    if bandit.menu.plain and not personalised:
        found = comparison(bandit.menu, bandit.read.tallies()[0])
        leader = found.ahead if found is not None and found.low > 0 else ""
    shown = arms
    if len(arms) > MOST_ARMS:
        shown = sorted(arms, key=lambda one: -one.decisions)[:MOST_ARMS]
    fields, table = list(bandit.settings.context.names), None
    if fields and slots:
        if first is None:
            first, second = most_different(bandit, LOOKED_AT, slot) or (fields[0], None)
            second = second or next((one for one in fields if one != first), None)
        table = crossed(bandit, first, second or None, slot=slot)
    return Shown(
        name=bandit.name,
        unit=unit_of(bandit),
        personalised=personalised,
        slots=slots,
        slot=slot,
        leader=leader,
        arms=shown,
        total=len(arms),
        colours=_colours(bandit, slot),
        notes=[
            Shown(choice=one.subject, words=NOTES[one.kind], sentence=sentence(one.sentence))
            for one in bandit.conditions()
            if one.kind in NOTES
        ],
        fields=fields,
        first=first or "",
        second=second or "",
        segments=table,
    )


def crossed(
    bandit: DurableBandit,
    first: str,
    second: str | None,
    *,
    slot: str = "",
    decisions: int = SEGMENT_DECISIONS,
) -> Shown:
    """What was shown in which segments, by one field or two crossed.

    ``rows`` have a name, a value of the first field, and a box for each of the ``columns``, the
    values of the second.
    """
    if first == second:
        raise InputError(
            f"the field {first!r:.60} is named twice: choose another second field, or none",
            parameter="second",
        )
    found = bandit.read.segments(first, second, slot=slot, decisions=decisions)
    columns = _frequent(found, 1) if second else [""]
    by_values, colours, rows = {one.values: one for one in found}, _colours(bandit, slot), []
    for row in _frequent(found, 0):
        places = [(row, column) if second else (row,) for column in columns]
        cells = [_box(bandit, by_values.get(place), colours) for place in places]
        rows.append(Shown(name=row, cells=cells))
    total = sum(one.decisions for one in found)
    return Shown(
        first=first,
        second=second or "",
        columns=columns if second else [],
        rows=rows,
        decisions=total,
        left_out=total - sum(cell.decisions for row in rows for cell in row.cells),
    )


def _frequent(segments: Sequence[Segment], place: int) -> list[str]:
    """The most frequent values of a field, in the order of their names or numbers."""
    counts = Counter[str]()
    for one in segments:
        counts[one.values[place]] += one.decisions
    return sorted((value for value, _ in counts.most_common(MOST_VALUES)), key=_order)


def _order(label: str) -> tuple[float, float, str]:
    """Bins of numbers by their edges (“below 3” first), then categories by their names."""
    word, _, rest = label.partition(" ")
    try:
        number = float(rest if word == "below" else word)
    except ValueError:
        return math.inf, 0.0, label
    return number, 0.0 if word == "below" else 1.0, label


def _colours(bandit: DurableBandit, slot: str) -> dict[str, int]:
    """The number of the colour of each choice, which never changes: its place in the menu."""
    choices = [one.choices for one in bandit.menu.slots if one.name == slot]
    return {one.name: number for number, one in enumerate(choices[0])} if choices else {}


def _box(bandit: DurableBandit, segment: Segment | None, colours: dict[str, int]) -> Shown:
    """A segment: what is shown there most, what earns most, and all choices.

    ``winner`` is the choice with the highest mean reward; it is ``clear`` if the interval of its
    difference from every other choice lies above 0. ``choice`` is empty if there is no decision.
    """
    if segment is None or not segment.decisions:
        return Shown(choice="", decisions=0, clear=False, arms=[])
    arms = []
    for choice, tally in segment.choices.items():
        rate, low, high = tally.weighted_rate(bandit.settings.scale)
        arms.append(
            Shown(
                choice=choice,
                colour=colours.get(choice, 8),
                decisions=round(tally.decisions),
                known=round(tally.known),
                share=round(tally.decisions) / segment.decisions,
                rate=rate,
                low=low,
                high=high,
            )
        )
    rated = [one for one in arms if one.rate is not None]
    enough = [one for one in rated if one.known >= FEWEST]
    winner = max(enough, key=lambda one: float(one.rate), default=None)
    others = [one for one in rated if one is not winner]
    clear = winner is not None and bool(others) and all(_above(winner, one) for one in others)
    return Shown(
        **{word: getattr(arms[0], word) for word in ("choice", "colour", "share")},
        decisions=segment.decisions,
        mean=segment.mean,
        winner="" if winner is None else winner.choice,
        clear=clear,
        arms=arms,
    )


def _above(one: Shown, other: Shown) -> bool:
    """Whether the 95 % interval of the difference of two rates lies above 0.

    Its lower end follows from the intervals of the two (Newcombe 1998, method 10).
    """
    if one.low is None or other.high is None:
        return False
    return bool(one.rate - other.rate > math.hypot(one.rate - one.low, other.high - other.rate))


def most_different(
    bandit: DurableBandit, decisions: int, slot: str | None = None
) -> tuple[str, str | None] | None:
    """The field by whose values choices differ most, alone or crossed with another; or None.

    A second field is taken only if choices differ more by both than by the first alone.
    """
    slot = slot_of(bandit, slot)
    wanted, names = min(decisions, LOOKED_AT), bandit.settings.context.names[:MOST_FIELDS]

    def far(first: str, second: str | None = None) -> float:
        """The mean distance of the shares of choices in a segment from those of all."""
        segments = bandit.read.segments(first, second, slot=slot, decisions=wanted)
        total: dict[str, float] = defaultdict(float)
        for one in segments:
            for choice, sums in one.choices.items():
                total[choice] += sums.decisions
        count, distance = sum(total.values()), 0.0
        for one in segments:
            own = {name: sums.decisions for name, sums in one.choices.items()}
            apart = (abs(own.get(name, 0.0) - one.decisions * all_ / count)
                     for name, all_ in total.items())  # fmt: skip
            distance += sum(apart) / 2
        return distance / count if count else 0.0

    alone = max(((far(name), name) for name in names), default=(0.0, ""))
    pairs = max(((far(alone[1], name), name) for name in names if name != alone[1]), default=alone)
    if pairs[0] > alone[0] + DIFFERENT / 2 and pairs[0] >= DIFFERENT:
        return alone[1], pairs[1]
    return (alone[1], None) if alone[0] >= DIFFERENT else None
