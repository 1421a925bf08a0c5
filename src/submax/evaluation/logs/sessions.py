"""Sessions: rows that follow each other, so that a decision can change what comes after."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError


class TrajectoryWeights(NamedTuple):
    """Products of the weights within sessions, each ``[n]``.

    With w_t the weight of the decision at step t of a session of T steps, ``before`` is
    Π_s<t w_s, ``through`` is Π_s≤t w_s, and ``whole`` is Π_s≤T w_s.
    """

    before: Floats
    through: Floats
    whole: Floats


def trajectory_weights(weight: Floats, session: Integers) -> TrajectoryWeights:
    """Return the products of weights within each session; rows are in the order of time."""
    order = np.argsort(session, kind="stable")
    sizes = np.bincount(session)
    starts = np.cumsum(sizes) - sizes
    ordered, through = weight[order], np.empty(len(weight))
    before = np.ones(len(weight))
    for step in range(int(sizes.max(initial=0))):
        rows = starts[sizes > step] + step
        if step:
            before[rows] = through[rows - 1]
        through[rows] = before[rows] * ordered[rows]
    whole = np.repeat(through[starts + sizes - 1], sizes)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return TrajectoryWeights(before[back], through[back], whole[back])


def whole_sessions(first: Booleans, session: Integers) -> Booleans:
    """Return a split in which each session is on the side of its first row."""
    _, beginning = np.unique(session, return_index=True)
    found = first[beginning][session]
    if found.all() or not found.any():
        raise InputError(
            "all rows would be on one side of the split, because sessions are not divided: give "
            "another share, or a log of more sessions"
        )
    return found
