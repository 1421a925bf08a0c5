"""Tables of the probabilities of joint actions, and of the choices within slots."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats


def among_eligible(table: Floats, mask: Booleans) -> Floats:
    """Return the probabilities given that the action is eligible.

    They are uniform over the eligible actions if the policy gives all of them probability 0.
    """
    eligible = np.where(mask, table, 0.0)
    total = eligible.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        uniform = mask / mask.sum(axis=1, keepdims=True)
        restricted: Floats = np.where(total > 0, eligible / total, uniform)
    return restricted


def tables_of_slots(table: Floats, sizes: tuple[int, ...]) -> list[Floats]:
    """Return the marginal probabilities of the choices of each slot, ``[n, choices]`` each."""
    if len(sizes) == 1:
        return [table]
    joint = table.reshape(len(table), *sizes)
    axes = range(1, len(sizes) + 1)
    return [joint.sum(axis=tuple(axis for axis in axes if axis != slot)) for slot in axes]


def slot_probabilities(slot_tables: list[Floats], action: NDArray[Any]) -> Floats:
    """Return the probability of the choice in each slot of each row's action, ``[n, S]``."""
    row = np.arange(len(action))
    probabilities = [
        table[row, chosen.astype(np.int64)]
        for table, chosen in zip(slot_tables, action.T, strict=True)
    ]
    return np.stack(probabilities, axis=1)


def unsupported_share(slot_tables: list[Floats], untaken: list[Booleans]) -> Floats:
    """Return the probability that any slot takes a choice that no row of the log took.

    Slots are treated as independent.
    """
    supported = np.ones(len(slot_tables[0]))
    for table, never in zip(slot_tables, untaken, strict=True):
        supported *= 1 - table[:, never].sum(axis=1)
    return 1 - supported
