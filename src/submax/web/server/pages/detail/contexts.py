"""Makes the page of contexts from the sums that the ledger keeps."""

import itertools
import math
from collections.abc import Sequence

import numpy as np

from submax.core.arrays import Floats
from submax.core.errors import NotFoundError
from submax.live.bandits.bandit import LiveBandit
from submax.live.log.action_tally import ChoiceTally
from submax.live.monitoring.rollups.context_sums import WARM_UP, ContextSums
from submax.live.monitoring.rollups.field_cells import FieldCells
from submax.live.monitoring.rollups.rollups import Rollups
from submax.live.operating.arm_status import weighted_rate
from submax.schema.context import Category
from submax.web.dashboard.formats import number, percent
from submax.web.server.pages.detail.context_messages import (
    ChoiceShare,
    ContextsPage,
    FieldDetails,
    ValueRow,
)
from submax.web.server.pages.detail.field_shares import FieldShares

Rate = tuple[float | None, float | None, float | None]
"""A mean reward with the ends of its interval."""
OTHERS = "all others"
FEWEST = 30
"""Rows of a choice below which no winner is named, and decisions at a value below which nothing
is said about them."""
DIFFERENT = 0.1
"""The least ``distance`` that is worth a sentence."""
MOST_SENTENCES = 5


def contexts_page(bandit: LiveBandit, field: str | None, slot: str | None) -> ContextsPage:
    """Rewards and winners by the values of one field."""
    rollups = bandit.rollups() or Rollups(len(bandit.menu.slots), bandit.settings.context)
    sums = rollups.contexts.settled()
    fields = [one.name for one in sums.fields]
    slots = [one.name for one in bandit.menu.slots[: sums.slots]]
    place = _place("field", field, fields)
    slot_number = _place("slot", slot, slots)
    details, sentences = None, []
    if fields and slots:
        details = field_details(bandit, sums, rollups.contexts.is_warm, place, slot_number)
        sentences = _sentences(bandit, sums, slot_number)
    return ContextsPage(
        bandit.name,
        fields,
        slots,
        slots[slot_number] if slots else "",
        bandit.policy.traits.uses_context,
        sentences,
        details,
    )


def field_details(
    bandit: LiveBandit, sums: ContextSums, warm: bool, field: int, slot: int
) -> FieldDetails:
    """A field with its values."""
    table, choices = sums.sums(field, slot), _choices(bandit, sums, slot)
    shares, described = FieldShares.of(table[..., 0]), sums.fields[field]
    labels = value_labels(described, bandit.settings.context.fields[field])
    rows = [
        _row(bandit, labels[cell], table[cell], choices, shares, cell)
        for cell in np.flatnonzero(shares.decisions).tolist()
    ]
    return FieldDetails(described.name, _note(described, warm), rows)


def _choices(bandit: LiveBandit, sums: ContextSums, slot: int) -> list[str]:
    """The names of the choices that have sums, and one for all others."""
    known = bandit.menu.slots[slot].choices
    return [*[known[one].name for one in sums.choices[slot]], OTHERS]


def value_labels(field: FieldCells, declared: object) -> list[str]:
    """The names of the cells of a field."""
    if isinstance(declared, Category):
        return _category_labels(field, declared.values)
    edges = field.edges or []
    if not edges:
        return ["all numbers"]
    between = [f"{number(low)} to {number(high)}" for low, high in itertools.pairwise(edges)]
    return [f"below {number(edges[0])}", *between, f"{number(edges[-1])} or more"]


def _category_labels(field: FieldCells, values: Sequence[str]) -> list[str]:
    unused = [""] * (field.cells - 1 - len(field.values))
    return [*[values[one] for one in field.values], *unused, OTHERS]


def _note(field: FieldCells, warm: bool) -> str:
    if not field.is_number:
        return (
            f"The first {field.cells - 1} categories that occurred have a row each."
            if field.width >= field.cells
            else ""
        )
    first = f"the first {WARM_UP:,} decisions" if warm else "the decisions so far"
    edges = ", ".join(map(number, field.edges or [])) or "none, because all numbers are equal"
    later = "" if warm else f"; they become final after {WARM_UP:,} decisions"
    return f"Edges of the bins are fifths of {first}: {edges}{later}."


def _row(
    bandit: LiveBandit,
    label: str,
    cells: Floats,
    choices: Sequence[str],
    shares: FieldShares,
    cell: int,
) -> ValueRow:
    decisions, rows = float(shares.decisions[cell]), cells[:, 1].sum()
    rates = [weighted_rate(_tally(one), bandit.settings.scale) for one in cells]
    enough = [one for one in range(len(choices) - 1) if cells[one, 1] >= FEWEST]
    winner = max(enough, key=lambda one: rates[one][0] or 0.0, default=None)
    rate, low, high = (None, None, None) if winner is None else rates[winner]
    others = [one for one in range(len(choices)) if one != winner and cells[one, 1]]
    return ValueRow(
        label,
        int(decisions),
        float(decisions / shares.decisions.sum()),
        float(cells[:, 2].sum() / rows) if rows else None,
        "" if winner is None else choices[winner],
        rate,
        low,
        high,
        winner is not None
        and bool(others)
        and all(_surely_above(rates[winner], rates[one]) for one in others),
        float(shares.distance[cell]),
        _most(choices, shares, cell),
    )


def _most(choices: Sequence[str], shares: FieldShares, cell: int) -> ChoiceShare:
    """The choice whose share at a value differs most from the average."""
    most = int(shares.most[cell])
    share, average = float(shares.share[cell, most]), float(shares.average[most])
    return ChoiceShare(choices[most], share, average)


def _surely_above(one: Rate, other: Rate) -> bool:
    """Whether the 95 % interval of the difference of two rates lies above 0.

    Its lower end is found from the intervals of the two (Newcombe 1998, method 10).
    """
    rate, low, _ = one
    other_rate, _, other_high = other
    if rate is None or low is None or other_rate is None or other_high is None:
        return False
    return rate - other_rate > math.hypot(rate - low, other_high - other_rate)


def _tally(cells: Floats) -> ChoiceTally:
    decisions, rows, reward, *weights = cells.tolist()
    first, second, third, fourth, fifth = weights
    return ChoiceTally(
        int(decisions), int(rows), reward, 0.0, (first, second, third, fourth, fifth)
    )


def _sentences(bandit: LiveBandit, sums: ContextSums, slot: int) -> list[str]:
    """Where decisions differ most from their average, over the values of all fields."""
    found = []
    for place in range(len(sums.fields)):
        shares = FieldShares.of(sums.sums(place, slot)[..., 0])
        differ = (shares.distance >= DIFFERENT) & (shares.decisions >= FEWEST)
        for cell in np.flatnonzero(differ).tolist():
            found.append((float(shares.distance[cell]), place, cell, shares))
    found.sort(key=lambda one: -one[0])
    choices, sentences = _choices(bandit, sums, slot), []
    for _, place, cell, shares in found[:MOST_SENTENCES]:
        field = sums.fields[place]
        value = value_labels(field, bandit.settings.context.fields[place])[cell]
        most = _most(choices, shares, cell)
        sentences.append(
            f"If {field.name} is {value}, {most.choice} gets {percent(most.share)} of the "
            f"decisions, and {percent(most.average)} on average."
        )
    return sentences


def _place(what: str, wanted: str | None, names: Sequence[str]) -> int:
    if wanted is None:
        return 0
    if wanted not in names:
        raise NotFoundError(
            f"there is no {what} {wanted!r:.60} among those that are summed by: give one of "
            f"{', '.join(names)[:300] or 'none'}"
        )
    return names.index(wanted)
