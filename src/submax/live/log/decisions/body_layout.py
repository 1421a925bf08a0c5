"""Where the values of a decision lie in its body, for many bodies at once."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats

# First bytes of values in MessagePack, https://github.com/msgpack/msgpack/blob/master/spec.md
ARRAY, ARRAY_16, TEXT, TEXT_8, TEXT_16 = 0x90, 0xDC, 0xA0, 0xD9, 0xDA
NIL, FALSE, TRUE, FLOAT = 0xC0, 0xC2, 0xC3, 0xCB
INTEGERS = {0xCC: ">u1", 0xCD: ">u2", 0xCE: ">u4", 0xD0: ">i1", 0xD1: ">i2", 0xD2: ">i4"}
FLOAT_BYTES = 9
FIELDS = 11
"""The number of fields of ``DecisionMade``."""


class Leaf(NamedTuple):
    """A value in a body: its type for numpy (``S`` for texts), and where its bytes are."""

    kind: str
    begin: int
    size: int


class UnknownLayoutError(Exception):
    """A body has a form that must be decoded by itself."""


class BodyLayout:
    """The layout of a body, and of all others that differ from it in their values alone.

    A body is MessagePack of ``DecisionMade``, and the attributes are where its values lie.
    ``probabilities``, ``unit`` and ``group`` are None if a decision has none, ``slots`` are the
    eligible choices of each slot, and ``eligible_span`` is where the field ``eligible`` lies as a
    whole. ``is_shortest`` says whether all lengths are written in the shortest form, as msgspec
    writes them.
    """

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0
        self._places: list[int] = []
        self._masks: list[int] = []
        self.is_shortest = True
        if self._array() != FIELDS:
            raise UnknownLayoutError
        self.action = self._leaves()
        self.propensity = self._leaf()
        self.version = self._leaf()
        self.context = self._leaves()
        begin = self._at
        self.slots = [self._leaves() for _ in range(self._array())]
        self.eligible_span = slice(begin, self._at)
        self.probabilities = None if self._is_nil() else self._leaves()
        self.activated, self.holdout = self._boolean(), self._boolean()
        self.unit = None if self._is_nil() else self._leaf()
        self.group = None if self._is_nil() else self._leaves()
        self.paused = self._boolean()
        self._check_types()
        self.size = len(body)
        self._masked = np.array(self._masks, np.uint8)
        self._expected = np.frombuffer(body, np.uint8)[self._places] & self._masked

    def matches(self, bodies: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Return which of some bodies of this size, ``[n, size]``, have this layout."""
        found: NDArray[np.bool_] = ((bodies[:, self._places] & self._masked) == self._expected).all(
            axis=1
        )
        return found

    def _check_types(self) -> None:
        """Raise an error unless the leaves have the types that the fields must have."""
        floats = [self.propensity, *(self.probabilities or ())]
        integers = [self.version, *(leaf for slot in self.slots for leaf in slot)]
        if (
            self._at != len(self._body)
            or any(leaf.kind != ">f8" for leaf in floats)
            or any(leaf.kind in (">f8", "S") for leaf in integers)
            or any(leaf.kind == "S" for leaf in self.action)
            or any(leaf.kind not in (">f8", "S") for leaf in self.context)
            or (self.unit is not None and self.unit.kind != "S")
        ):
            raise UnknownLayoutError
        if self.group is not None:
            since, *rest = [leaf.kind for leaf in self.group]
            if since in (">f8", "S") or rest != ["S", ">f8", ">f8"]:
                raise UnknownLayoutError

    def _first(self, mask: int = 0xFF) -> int:
        """Return the next byte; in other bodies the bits of ``mask`` must be the same."""
        if self._at >= len(self._body):
            raise UnknownLayoutError
        self._places.append(self._at)
        self._masks.append(mask)
        self._at += 1
        return self._body[self._at - 1]

    def _length(self, size: int) -> int:
        return int.from_bytes(bytes(self._first() for _ in range(size)))

    def _at_least(self, fewest: int, length: int) -> int:
        """Return a length, for which there is a shorter form if it is below the fewest."""
        self.is_shortest = self.is_shortest and length >= fewest
        return length

    def _array(self) -> int:
        """Read the beginning of an array; return the number of its elements."""
        first = self._first()
        if first & 0xF0 == ARRAY:
            return first & 0x0F
        if first == ARRAY_16:
            return self._at_least(16, self._length(2))
        raise UnknownLayoutError

    def _leaves(self) -> list[Leaf]:
        return [self._leaf() for _ in range(self._array())]

    def _leaf(self) -> Leaf:
        first = self._first()
        if first < 0x80:
            # The value is in the first byte itself, whose highest bit must be 0.
            self._masks[-1] = 0x80
            return Leaf("u1", self._at - 1, 1)
        if first == FLOAT:
            return self._value(">f8", 8)
        if first in INTEGERS:
            return self._value(INTEGERS[first], int(INTEGERS[first][-1]))
        if first & 0xE0 == TEXT:
            return self._value("S", first & 0x1F)
        if first == TEXT_8:
            return self._value("S", self._at_least(32, self._length(1)))
        if first == TEXT_16:
            return self._value("S", self._at_least(256, self._length(2)))
        raise UnknownLayoutError

    def _value(self, kind: str, size: int) -> Leaf:
        begin = self._at
        self._at += size
        return Leaf(kind, begin, size)

    def _is_nil(self) -> bool:
        if self._body[self._at : self._at + 1] != bytes([NIL]):
            return False
        self._first()
        return True

    def _boolean(self) -> int:
        if self._first(0xFE) not in (FALSE, TRUE):
            raise UnknownLayoutError
        return self._at - 1


SHORTEST = {
    ">u1": 0x80,
    ">u2": 1 << 8,
    ">u4": 1 << 16,
    ">i1": -33,
    ">i2": -129,
    ">i4": -(1 << 15) - 1,
}
"""The smallest unsigned and the largest signed integer that has no shorter form."""


def are_shortest(bodies: NDArray[np.uint8], leaf: Leaf) -> bool:
    """Whether all values of a leaf that is an integer are written in the shortest form."""
    if leaf.kind == "u1":
        return True
    values, limit = values_at(bodies, leaf).astype(np.int64), SHORTEST[leaf.kind]
    return bool((values >= limit).all() if limit > 0 else (values <= limit).all())


def values_at(bodies: NDArray[np.uint8], leaf: Leaf) -> NDArray[np.generic]:
    """Return the values of a leaf that is a number, ``[n]``."""
    data = np.ascontiguousarray(bodies[:, leaf.begin : leaf.begin + leaf.size])
    return data.view(leaf.kind)[:, 0]


def texts_at(bodies: NDArray[np.uint8], leaf: Leaf) -> list[str]:
    """Return the values of a leaf that is a text."""
    data = np.ascontiguousarray(bodies[:, leaf.begin : leaf.begin + leaf.size]).tobytes()
    return [
        data[number * leaf.size : (number + 1) * leaf.size].decode()
        for number in range(len(bodies))
    ]


def floats_at(bodies: NDArray[np.uint8], leaves: list[Leaf]) -> Floats:
    """Return the values of leaves that are floats one after the other, ``[n, leaves]``."""
    if not leaves:
        return np.zeros((len(bodies), 0))
    # Each number comes after the byte that says that it is one.
    begin, shape, steps = leaves[0].begin, (len(bodies), len(leaves)), bodies.strides[0]
    numbers = np.ndarray(shape, ">f8", bodies, begin, (steps, FLOAT_BYTES))
    return numbers.astype(np.float64)
