"""Arrays in files of a temporary folder, for data that is larger than memory."""

import mmap
import shutil
import weakref
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Integers
from submax.core.numerics import PIECE_ROWS, pieces

SPARSE_ROWS = 1 << 13
"""Rows that are taken together from anywhere in a column on disk."""
IN_MEMORY = 1 << 19
"""Rows that are taken from arrays on disk into memory; more are written to another file."""


class TemporaryFolder:
    """A folder that is removed when nothing refers to it any more, or when the process ends."""

    def __init__(self) -> None:
        self.path, self.numbers = Path(mkdtemp(prefix="submax-")), count()
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def new_column(folder: TemporaryFolder | None, dtype: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a column of zeros in a new file, or in memory if there is no folder."""
    if folder is None or not all(shape):
        # A file without a byte cannot be mapped.
        return np.zeros(shape, dtype)
    return np.memmap(folder.path / f"column{next(folder.numbers)}", dtype, "w+", shape=shape)


def in_pieces(column: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield the rows of a column, and give back the memory of those that were used."""
    for rows in pieces(len(column)):
        yield column[rows]
        release([column])


def release(columns: Iterable[Any]) -> None:
    """Give back the memory of columns on disk, whose pages stay mapped after they were read."""
    for column in columns:
        mapping = getattr(column, "_mmap", None)
        if mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
            mapping.madvise(mmap.MADV_DONTNEED)


def taken(
    column: NDArray[Any], which: Booleans | Integers | slice, folder: TemporaryFolder | None
) -> NDArray[Any]:
    """Return some rows of a column; many rows of a column on disk are written to another file."""
    if folder is None or isinstance(which, slice):
        return column[which]
    number = np.flatnonzero(which) if which.dtype == bool else which
    shape = (len(number), *column.shape[1:])
    small = len(number) <= IN_MEMORY
    found = new_column(None if small else folder, column.dtype, shape)
    # A few rows that are far apart touch all pages of a column between them.
    step = SPARSE_ROWS if small else PIECE_ROWS
    for rows in pieces(len(number), step):
        found[rows] = column[number[rows]]
        release([column, found])
    return found
