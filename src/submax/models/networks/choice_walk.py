"""Actions that are followed from slot to slot through an autoregressive network."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.models.networks.autoregressive_network import AutoregressiveNetwork


class ChoiceWalk:
    """Follows ``count`` actions of every row through the slots of a network.

    ``given [R, L, n, H]`` is what the contexts add to the first layer. As long as the earlier
    choices have at most ``count`` combinations, each combination is evaluated once for all actions
    of a row; from then on every action is evaluated alone. Many actions of a row begin alike, so
    that this takes a fraction of the evaluations.
    """

    def __init__(
        self, network: AutoregressiveNetwork, given: Floats, sizes: tuple[int, ...], count: int
    ) -> None:
        self._network = network
        self._sizes = sizes
        self._slot = 0
        # The combinations that are evaluated, [R, L, n, P, H], and which of them an action has.
        self._reached = given[:, :, :, None]
        self._combination = np.zeros((len(given), given.shape[2], count), dtype=np.int64)

    def chances(self) -> Floats:
        """Return the probabilities of the slot's choices for each combination: ``[R, L, n, P, K]``.

        `of_actions` selects those of each action.
        """
        *shape, combinations, hidden = self._reached.shape
        flat = self._reached.reshape(*shape[:2], shape[2] * combinations, hidden)
        found = self._network.slot_probabilities(flat, self._slot, self._sizes)
        return found.reshape(*shape, combinations, self._sizes[self._slot])

    def of_actions(self, found: Floats) -> Floats:
        """Select the row of each action: ``[R, L, n, P, K] -> [R, L, n, count, K]``."""
        return _rows(found, self._combination[:, None])

    def of_choices(self, found: Floats, choice: Integers) -> Floats:
        """Select what belongs to each action's choice: ``[R, L, n, P, K] -> [R, L, n, count]``."""
        *shape, combinations, size = found.shape
        place = (self._combination * size + choice)[:, None]
        return np.take_along_axis(found.reshape(*shape, combinations * size), place, axis=3)

    def take(self, choice: Integers) -> None:
        """Go on to the next slot with the choices ``[R, n, count]`` of this one."""
        weights, size = self._network.of_slot(self._slot, self._sizes), self._sizes[self._slot]
        *shape, combinations, hidden = self._reached.shape
        count = choice.shape[2]
        self._slot += 1
        if combinations * size <= count:
            expanded = self._reached[..., None, :] + weights[:, :, None, None]
            self._reached = expanded.reshape(*shape, combinations * size, hidden)
            self._combination = self._combination * size + choice
            return
        alone = _rows(self._reached, self._combination[:, None])
        alone += _rows(weights, choice.reshape(len(choice), 1, -1)).reshape(alone.shape)
        self._reached = alone
        self._combination = np.broadcast_to(np.arange(count), choice.shape)


def _rows(table: NDArray[Any], row: Integers) -> NDArray[Any]:
    """Take whole rows of the last axis but one: ``[..., P, K]`` and ``[..., m] -> [..., m, K]``.

    ``row`` is broadcast. This is several times faster than ``np.take_along_axis``, which looks up
    every number by an index of its own.
    """
    *shape, length, width = table.shape
    first: Integers = length * np.arange(math.prod(shape)).reshape(*shape, 1)
    return np.ascontiguousarray(table).reshape(-1, width).take(first + row, axis=0)
