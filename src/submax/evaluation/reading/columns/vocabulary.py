"""Assigns indices to the names of choices and categories in a log."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from submax.core.arrays import Integers
from submax.schema.names import LONGEST_NAME

UNKNOWN, MISSING = -1, -2
"""In place of an index: a value that is not in the vocabulary, and an empty cell."""
NO_NAME = f"is not a name of 1 to {LONGEST_NAME} printable characters"
"""The reason for which a value is unknown if no names were declared."""


class Vocabulary:
    """The indices of names: of those that were declared, or of all names as they occur.

    ``open`` says that none were declared, so that every name gets the next index.
    """

    def __init__(self, declared: Iterable[str] | None = None) -> None:
        self.open = declared is None
        self.indices = {name: index for index, name in enumerate(declared or ())}

    def code(self, column: Any) -> Integers:
        """Return the index of each value of a pyarrow array; UNKNOWN and MISSING are negative."""
        if not pa.types.is_dictionary(column.type):
            try:
                column = column.dictionary_encode()
            except pa.ArrowNotImplementedError:
                # pyarrow cannot encode lists and other nested values.
                return np.array([self.index(one) for one in column.to_pylist()], dtype=np.int64)
        names = column.dictionary.to_pylist()
        table = np.array([*(self.index(name) for name in names), MISSING], dtype=np.int64)
        place = column.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
        return table[np.asarray(place, dtype=np.int64)]

    def index(self, value: Any) -> int:
        """Return the index of one value, which becomes a new name in an open vocabulary."""
        if isinstance(value, (list, dict)):
            return UNKNOWN
        name = as_name(value)
        if name is None:
            return MISSING
        if name not in self.indices:
            if not self.open or len(name) > LONGEST_NAME or not name.isprintable():
                return UNKNOWN
            self.indices[name] = len(self.indices)
        return self.indices[name]

    def sorted(self, used: Integers) -> tuple[list[str], Integers]:
        """Return the ``used`` names in sorted order, and the new index of each old index."""
        names = list(self.indices)
        order = sorted(used.tolist(), key=lambda place: rank(names[place]))
        new_index = np.full(len(names), UNKNOWN, dtype=np.int64)
        new_index[order] = np.arange(len(order))
        return [names[one] for one in order], new_index


def as_name(value: Any) -> str | None:
    """Return a value as the name of a choice or category; None if the value is missing."""
    if value is None or value in ("", b"") or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    # Some Parquet files hold text as bytes.
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


def not_whole(names: Iterable[str]) -> bool:
    """Return whether all names are finite numbers, and some of them are not whole."""
    ranks = [rank(name) for name in names]
    return all(kind == 0 and math.isfinite(number) for kind, number, _ in ranks) and any(
        not number.is_integer() for _, number, _ in ranks
    )


def rank(name: str) -> tuple[int, float, str]:
    """Return a key that sorts numbers first, by value, and other names after them."""
    try:
        number = float(name)
    except ValueError:
        return (1, 0.0, name)
    return (1, 0.0, name) if math.isnan(number) else (0, number, name)
