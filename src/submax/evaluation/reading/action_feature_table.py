"""Reads features of the actions of a log from a table with one row for each action."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from submax.core.errors import InputError
from submax.evaluation.reading.bad_rows import BadRows
from submax.evaluation.reading.columns.cells import numbers
from submax.evaluation.reading.columns.vocabulary import as_name
from submax.evaluation.reading.sources.opening import open_source
from submax.evaluation.reading.sources.source import Source
from submax.schema.action_features import described
from submax.schema.choices import ARMS, Slot, of_slot
from submax.schema.menu import Menu
from submax.schema.names import short_repr

ACTION, SLOT, CHOICE = "action", "slot", "choice"
"""Columns that say which choice a row describes: ``action``, or ``slot`` and ``choice``."""


def read_action_features(given: Any) -> Mapping[str, Any]:
    """Return the features of choices by name, in the form that ``submax.open`` accepts.

    ``given`` is already of this form, or it is a file or data frame with one row for each choice:
    a column ``action``, or the columns ``slot`` and ``choice``, and a column for each feature.
    """
    if isinstance(given, Mapping):
        return given
    source = open_source(given)
    keys = [ACTION] if ACTION in source.columns else [SLOT, CHOICE]
    features = [name for name in source.columns if name not in keys]
    if not features or not set(keys) <= set(source.columns):
        raise InputError(
            f"the action features in {source.name} have the columns "
            f"{', '.join(source.columns)[:200]}, and must have a column 'action', or the columns "
            "'slot' and 'choice', and a column for each feature: add or rename columns",
            parameter="action_features",
        )
    table = _read(source)
    names = zip(*(map(as_name, table.column(key).to_pylist()) for key in keys), strict=True)
    columns = {name: _cells(table, name, name in source.numeric) for name in features}
    found = _by_name(list(names), columns)
    return found[ARMS] if keys == [ACTION] else found


def described_menu(menu: Menu, features: Mapping[str, Any]) -> tuple[Menu, list[str]]:
    """Return the menu with features, and notes about features of choices the log does not have."""
    tables = {ARMS: features} if menu.plain else dict(features)
    not_in_log = []
    for slot in menu.slots:
        table = tables.get(slot.name)
        if isinstance(table, Mapping):
            known = {choice.name for choice in slot.choices}
            not_in_log += [
                f"{name!s:.80}{of_slot(slot.name)}" for name in table if name not in known
            ]
            tables[slot.name] = {name: one for name, one in table.items() if name in known}
    slots: tuple[Slot, ...] = described(menu.slots, tables[ARMS] if menu.plain else tables)
    note = (
        "action features of choices that the log does not have were ignored: "
        f"{', '.join(not_in_log)[:200]}"
    )
    return msgspec.structs.replace(menu, slots=slots), [note] if not_in_log else []


def _read(source: Source) -> Any:
    bad = BadRows()
    batches = list(source.batches(source.columns, bad))
    rows = sum(batch.num_rows for batch in batches)
    bad.refuse(source.name, rows + len(bad.lines))
    if not rows:
        raise InputError(
            f"the table of action features in {source.name} has no rows: add a row for each action",
            parameter="action_features",
        )
    return pa.Table.from_batches(batches)


def _cells(table: Any, name: str, numeric: bool) -> list[float | str | None]:
    """Return the numbers or texts of a column; None for empty cells."""
    column = table.column(name).combine_chunks()
    if not numeric:
        return [as_name(value) for value in column.to_pylist()]
    read = numbers(column)
    if read.wrong.any():
        row = int(np.argmax(read.wrong))
        raise InputError(
            f"the action feature {name!r} is {short_repr(column[row].as_py())} in row {row + 1} "
            "and a number in others: give finite numbers to all choices, or texts to all",
            parameter="action_features",
        )
    return [None if np.isnan(value) else float(value) for value in read.values]


def _by_name(
    keys: list[tuple[str | None, ...]], columns: dict[str, list[float | str | None]]
) -> dict[str, dict[str, Any]]:
    """Return the features of each choice of each slot, without empty cells."""
    found: dict[str, dict[str, Any]] = {}
    for row, key in enumerate(_complete(keys)):
        slot, choice = key if len(key) > 1 else (ARMS, *key)
        choices = found.setdefault(slot, {})
        if choice in choices:
            raise InputError(
                f"row {row + 1} of the action features describes {choice!r}{of_slot(slot)}, which "
                "an earlier row describes: leave one of the two rows out",
                parameter="action_features",
            )
        cells = {name: column[row] for name, column in columns.items()}
        choices[choice] = {name: cell for name, cell in cells.items() if cell is not None}
    return found


def _complete(keys: list[tuple[str | None, ...]]) -> Iterator[tuple[str, ...]]:
    for row, key in enumerate(keys):
        names = tuple(name for name in key if name is not None)
        if len(names) < len(key):
            raise InputError(
                f"row {row + 1} of the action features does not name a choice: add the name, or "
                "leave the row out",
                parameter="action_features",
            )
        yield names
