"""Many values of bytes, which lie in one buffer."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ByteColumn:
    """``n`` values of bytes: parts of ``data`` that begin at ``begin`` and have ``size`` bytes.

    Numpy reads values of one size at once, without a Python object for each of them.

    >>> column = ByteColumn.of([b"one", b"three", b"two"])
    >>> column[1]
    b'three'
    >>> column.take(np.array([0, 2])).rows().tolist()
    [[111, 110, 101], [116, 119, 111]]
    """

    __slots__ = ("begin", "data", "size")

    def __init__(self, data: bytes, begin: NDArray[np.int64], size: NDArray[np.int64]) -> None:
        self.data, self.begin, self.size = data, begin, size

    @classmethod
    def of(cls, values: Sequence[bytes]) -> "ByteColumn":
        """Return a column of some values."""
        size = np.fromiter(map(len, values), np.int64, len(values))
        return cls(b"".join(values), np.cumsum(size) - size, size)

    def __len__(self) -> int:
        return len(self.begin)

    def __getitem__(self, place: int) -> bytes:
        begin = int(self.begin[place])
        return self.data[begin : begin + int(self.size[place])]

    def __iter__(self) -> Iterator[bytes]:
        data = self.data
        for begin, end in zip(self.begin.tolist(), (self.begin + self.size).tolist(), strict=True):
            yield data[begin:end]

    def take(self, places: NDArray[Any] | slice) -> "ByteColumn":
        """Return the values at some places, without copying them."""
        return ByteColumn(self.data, self.begin[places], self.size[places])

    def rows(self) -> NDArray[np.uint8]:
        """Return the bytes of all values, which must have the same size, ``[n, size]``."""
        if not len(self) or not self.size[0]:
            return np.zeros((len(self), 0), np.uint8)
        size = int(self.size[0])
        found = values_at(self.data, f"V{size}", self.begin)
        return found.view(np.uint8).reshape(len(self), size)


def values_at(data: bytes, kind: str, places: NDArray[np.int64]) -> NDArray[Any]:
    """Return the values of a type of numpy that begin at some bytes; they need not be aligned.

    An ``IndexError`` is raised if a value would begin before the data or end after them.
    """
    last = len(data) - np.dtype(kind).itemsize
    if not len(places):
        return np.zeros(0, kind)
    if int(places.min()) < 0 or int(places.max()) > last:
        raise IndexError("a value lies outside of the data")
    # One item begins at every byte, so that the places are indices.
    return np.ndarray((last + 1,), kind, data, 0, (1,))[places]
