"""The page of arms and segments: what each choice earns, and what is shown to whom."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

from submax.bandit.arms import ArmStatus
from submax.bandit.durable import DurableBandit
from submax.bandit.reading import SEGMENT_DECISIONS, Segment
from submax.core.errors import InputError
from submax.server.pages.charts import slot_of
from submax.server.pages.comparing import comparison, is_personalised, unit_of
from submax.server.pages.formats import Shown, sentence

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
MOST_ARMS = 100
"""Choices on one page, so a browser shows it quickly."""
NOTES = {"silent-arm": "no rewards", "late-arm": "late rewards"}
"""What a condition says about an arm, in two words."""


def arms_page(
    bandit: DurableBandit,
    slot: str | None = None,
    page: str | None = None,
    first: str | None = None,
    second: str | None = None,
) -> Shown:
    """What each choice earns, and segments by the fields ``first`` and ``second``.

    Without ``first``, by the field by which choices differ most, crossed with the next one.
    """
    slots, slot = [one.name for one in bandit.menu.slots], slot_of(bandit, slot)
    arms = [one for one in bandit.arms() if one.slot == slot] if slots else []
    ahead, colours = _leader(bandit, arms), _colours(bandit, slot)
    number, pages = _page_number(page), math.ceil(len(arms) / MOST_ARMS)
    if pages > 1:
        arms.sort(key=lambda one: -one.decisions)
    fields, table = list(bandit.settings.context.names), None
    if fields and slots:
        if first is None:
            first, second = most_different(bandit, LOOKED_AT, slot) or (fields[0], None)
            second = second or next((one for one in fields if one != first), None)
        table = crossed(bandit, first, second or None, slot=slot)
    return Shown(
        name=bandit.name,
        unit=unit_of(bandit),
        personalised=is_personalised(bandit),
        slots=slots,
        slot=slot,
        leader=ahead,
        arms=arms[(number - 1) * MOST_ARMS : number * MOST_ARMS],
        colours=colours,
        notes=[
            Shown(choice=one.subject, words=NOTES[one.kind], sentence=sentence(one.sentence))
            for one in bandit.conditions()
            if one.kind in NOTES
        ],
        page=number,
        pages=pages,
        total=len(arms),
        fields=fields,
        first=first or "",
        second=second or "",
        segments=table,
    )


def _leader(bandit: DurableBandit, arms: Sequence[ArmStatus]) -> str:
    """The arm that is surely ahead of all others over the whole time, empty if none is."""
    if not bandit.menu.plain or is_personalised(bandit):
        return ""
    found = comparison(bandit.menu, bandit.read.tallies()[0])
    return found.ahead if found is not None and found.low > 0 else ""


def _page_number(text: str | None) -> int:
    """The number of the page that was asked for; 1 if none was."""
    if text is None:
        return 1
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 7 and int(text)):
        raise InputError(f"page was {text!r:.60}: give a number from 1 on", parameter="page")
    return int(text)


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
    by_values = {one.values: one for one in found}
    colours = _colours(bandit, slot)
    rows = []
    for row in _frequent(found, 0):
        places = [(row, column) if second else (row,) for column in columns]
        cells = [_box(bandit, by_values.get(place), colours) for place in places]
        rows.append(Shown(name=row, cells=cells))
    total = sum(one.decisions for one in found)
    shown = sum(cell.decisions for row in rows for cell in row.cells)
    return Shown(
        first=first,
        second=second or "",
        columns=columns if second else [],
        rows=rows,
        decisions=total,
        left_out=total - shown,
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
        return Shown(choice="", colour=0, share=None, decisions=0, mean=None, winner="",
                     clear=False, arms=[])  # fmt: skip
    arms = []
    for choice, tally in segment.choices.items():
        rate, low, high = tally.weighted_rate(bandit.settings.scale)
        decisions = round(tally.decisions)
        arms.append(
            Shown(
                choice=choice,
                colour=colours.get(choice, 8),
                decisions=decisions,
                known=round(tally.known),
                share=decisions / segment.decisions,
                rate=rate,
                low=low,
                high=high,
            )
        )
    rated = [one for one in arms if one.rate is not None]
    enough = [one for one in rated if one.known >= FEWEST]
    winner = max(enough, key=lambda one: float(one.rate), default=None)
    others = [one for one in rated if one is not winner]
    return Shown(
        choice=arms[0].choice,
        colour=arms[0].colour,
        share=arms[0].share,
        decisions=segment.decisions,
        mean=segment.mean,
        winner="" if winner is None else winner.choice,
        clear=winner is not None and bool(others) and all(_above(winner, one) for one in others),
        arms=arms,
    )


def _above(one: Shown, other: Shown) -> bool:
    """Whether the 95 % interval of the difference of two rates lies above 0.

    Its lower end follows from the intervals of the two (Newcombe 1998, method 10).
    """
    if one.low is None or other.high is None:
        return False
    least = math.hypot(one.rate - one.low, other.high - other.rate)
    return bool(one.rate - other.rate > least)


def _distance(segments: Sequence[Segment]) -> float:
    """How differently segments are decided: the mean distance of their shares from the average."""
    total: dict[str, float] = defaultdict(float)
    for one in segments:
        for choice, sums in one.choices.items():
            total[choice] += sums.decisions
    count = sum(total.values())
    far = 0.0
    for one in segments:
        shares = {name: sums.decisions / one.decisions for name, sums in one.choices.items()}
        apart = sum(abs(shares.get(name, 0.0) - all_ / count) for name, all_ in total.items())
        far += one.decisions * apart / 2
    return far / count if count else 0.0


def most_different(
    bandit: DurableBandit, decisions: int, slot: str | None = None
) -> tuple[str, str | None] | None:
    """The field by whose values choices differ most, alone or crossed with another; or None.

    A second field is taken only if choices differ more by both than by the first alone.
    """
    slot = slot_of(bandit, slot)
    wanted, names = min(decisions, LOOKED_AT), bandit.settings.context.names[:MOST_FIELDS]

    def far(first: str, second: str | None = None) -> float:
        return _distance(bandit.read.segments(first, second, slot=slot, decisions=wanted))

    alone = max(((far(name), name) for name in names), default=(0.0, ""))
    pairs = max(((far(alone[1], name), name) for name in names if name != alone[1]), default=alone)
    if pairs[0] > alone[0] + DIFFERENT / 2 and pairs[0] >= DIFFERENT:
        return alone[1], pairs[1]
    return (alone[1], None) if alone[0] >= DIFFERENT else None
