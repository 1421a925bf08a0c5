"""Training rows that are read part by part, when they are needed."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Self

from submax.schema.rows import Columns


class RowPart(NamedTuple):
    """A number of ``rows``, from number ``first`` on, of a whole that a function reads.

    ``key`` identifies the contents of the whole, if it never changes; None if it may.
    """

    rows: int
    read_whole: Callable[[], Columns]
    key: str | None = None
    first: int = 0

    @classmethod
    def of(cls, columns: Columns, key: str | None = None) -> Self:
        """Return a part that is in memory already."""
        return cls(len(columns.reward), lambda: columns, key)

    def read(self) -> Columns:
        """Read the rows of this part."""
        return self.read_whole().rows(slice(self.first, self.first + self.rows))

    def between(self, first: int, end: int) -> "RowPart":
        """Return a range of the rows of this part."""
        first, end = max(first, 0), min(end, self.rows)
        return self._replace(rows=end - first, first=self.first + first)


class LazyRows:
    """A sequence of parts. Iterating reads one part after the other, as often as it is asked for.

    >>> import numpy as np
    >>> part = Columns(np.zeros((3, 0), np.float32), np.zeros((3, 1)), np.arange(3.0), np.zeros(3))
    >>> rows = LazyRows([RowPart.of(part), RowPart.of(part)])
    >>> rows.count
    6
    >>> [found.reward.tolist() for found in rows.between(1, 5)]
    [[1.0, 2.0], [0.0, 1.0]]
    """

    def __init__(self, parts: Sequence[RowPart]) -> None:
        self.parts = parts
        self.count = sum(part.rows for part in parts)

    def __iter__(self) -> Iterator[Columns]:
        for part in self.parts:
            yield part.read()

    def between(self, first: int, end: int) -> "LazyRows":
        """Return the rows from number ``first`` up to number ``end``."""
        found, begin = [], 0
        for part in self.parts:
            if begin < end and begin + part.rows > first:
                found.append(part.between(first - begin, end - begin))
            begin += part.rows
        return LazyRows(found)

    def last(self, most: int) -> "LazyRows":
        """Return the last rows, at most this many."""
        return self.between(self.count - most, self.count)
