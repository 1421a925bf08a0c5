"""Checks probabilities that come from outside of the library."""

from typing import Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.errors import InputError
from submax.core.summary import listed
from submax.schema.schema import Schema

SUM_TOLERANCE = 1e-4
"""Difference from 1 up to which the probabilities of a row may add up: they are often rounded."""


def joint_actions(schema: Schema) -> int:
    """Return the number of joint actions of a schema."""
    return int(np.prod([len(slot.choices) for slot in schema.menu.slots]))


def checked_probabilities(given: Any, rows: int, schema: Schema, what: str) -> Floats:
    """Return probabilities ``[n, M]``, or one chosen action for each row as such probabilities.

    They are divided by their sum, which must be 1 up to rounding.
    """
    table = np.asarray(given)
    if table.ndim == 1 and len(table) == rows:
        return _of_choices(table, schema, what)
    size = joint_actions(schema)
    if table.shape != (rows, size):
        raise InputError(
            f"{what} are of the shape {list(table.shape)}; [{rows}, {size}] is allowed, a row for "
            f"each decision and a column for each action ({_names(schema)}), or the name of one "
            "action for each decision: give an array of this shape",
            parameter="policies",
        )
    table = table.astype(np.float64)
    sums = table.sum(axis=1)
    bad = ~np.isfinite(sums) | (np.abs(sums - 1) > SUM_TOLERANCE) | (table < 0).any(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{what}, row {row}: the probabilities are from {table[row].min():g} to "
            f"{table[row].max():g} and add up to {sums[row]:g} ({int(bad.sum())} such rows); "
            "numbers of at least 0 that add up to 1 are allowed: divide each row by its sum",
            parameter="policies",
        )
    result: Floats = table / sums[:, None]
    return result


def _of_choices(chosen: Any, schema: Schema, what: str) -> Floats:
    menu = schema.menu
    if len(menu.slots) != 1:
        raise InputError(
            f"{what} are one action for each decision, and this log has {len(menu.slots)} slots; "
            "probabilities of all joint actions are allowed: give an array [rows, joint actions]",
            parameter="policies",
        )
    names = [choice.name for choice in menu.slots[0].choices]
    index = {name: place for place, name in enumerate(names)}
    places = [index.get(str(one), -1) for one in chosen.tolist()]
    if -1 in places:
        row = places.index(-1)
        raise InputError(
            f"{what}, row {row}: {str(chosen[row])!r} is not an action of the log; allowed: "
            f"{listed(names)}: give one of them for each decision",
            parameter="policies",
        )
    return np.eye(len(names))[places]


def _names(schema: Schema) -> str:
    return listed([choice.name for slot in schema.menu.slots for choice in slot.choices])
