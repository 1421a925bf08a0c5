"""The arrays inside a state, and whether a call has changed them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def leaves(state: object) -> list[NDArray[Any]]:
    """Return every array in nested tuples, lists and mappings; other objects are left out.

    >>> len(leaves((np.zeros(2), {"deeper": [np.ones(3)]}, "no array")))
    2
    """
    if isinstance(state, np.ndarray):
        return [state]
    if isinstance(state, Mapping):
        return leaves(list(state.values()))
    if isinstance(state, tuple | list):
        return [array for part in state for array in leaves(part)]
    return []


def copied(state: object) -> list[NDArray[Any]]:
    """Return a copy of every array of a state, as the argument ``before`` of ``unchanged``."""
    return [array.copy() for array in leaves(state)]


def unchanged(before: list[NDArray[Any]], state: object) -> bool:
    """Return whether the arrays of a state equal the copies from before; NaN equals NaN."""
    after = leaves(state)
    return len(before) == len(after) and all(map(_equal, before, after))


def _equal(before: NDArray[Any], after: NDArray[Any]) -> bool:
    return np.array_equal(before, after, equal_nan=before.dtype.kind == "f")
