"""Coordinate ascent on a value network, for joint actions that are too many to list."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.core.spaces.space import Space
from submax.models.networks.slot_choices import first_choices
from submax.models.networks.value_network import Numbers, ValueNetwork, Weights
from submax.policies.neural.value_belief import ValueBelief

Masks: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32]]

CANDIDATE_ACTIVATIONS = 2**18
"""About how many activations one step of a climb holds: 1 MB of float32, so that they stay in the
cache of one core."""


def check_choices(space: Space, policy: str) -> None:
    """Raise an InputError if an action has real-valued parts, over which nothing climbs."""
    if space.reals:
        raise InputError(
            f"{policy} climbs over choices, and {space} has real-valued parts: take "
            "fourier-thompson or rcp-cvae-submax"
        )


def climbed_actions(
    belief: ValueBelief,
    context: Floats,
    starts: Integers,
    sweeps: int,
    masks: Masks | None = None,
) -> Integers:
    """Return the action of the highest value that a climb finds in each context: ``[R, n, S]``.

    ``starts [R, T, S]`` are the actions at which T climbs begin in every context. A sweep sets one
    slot after the other to its best choice, given the choices of all other slots. The best end of
    the T climbs counts. ``masks`` are dropout masks of the two layers, ``[R, n, H]``.
    """
    belief.problem.check_context(context)
    network, sizes = belief.network, belief.problem.space.choices
    replicas, climbs, slots = starts.shape
    given = network.given(belief.inputs(context))
    step = max(1, CANDIDATE_ACTIVATIONS // (climbs * max(sizes) * given.shape[-1]))
    found = np.empty((replicas, context.shape[1], slots), dtype=np.int64)
    for replica in range(replicas):
        for begin in range(0, context.shape[1], step):
            part = (replica, slice(begin, begin + step))
            of_part = None if masks is None else (masks[0][part], masks[1][part])
            climb = _Climb(network.of_replica(replica), sizes, given[part], of_part)
            found[part] = climb.best_end(starts[replica], sweeps)
    return found


class _Climb:
    """Climbs over the choices of one replica, in n contexts whose part of layer 1 is ``given``."""

    def __init__(
        self, network: ValueNetwork, sizes: tuple[int, ...], given: Weights, masks: Masks | None
    ) -> None:
        self.network, self.given, self.masks = network, given, masks
        self.rows_of_slot = [
            network.choice_weight[first : first + size]
            for first, size in zip(first_choices(sizes), sizes, strict=True)
        ]

    def best_end(self, starts: Integers, sweeps: int) -> Integers:
        """Return the best end ``[n, S]`` of climbs that begin at ``starts [T, S]``."""
        contexts = np.repeat(np.arange(len(self.given)), len(starts))
        action = np.tile(starts, (len(self.given), 1))
        reached = self.given[contexts]
        for slot, rows in enumerate(self.rows_of_slot):
            reached += rows[action[:, slot]]
        value = np.empty(len(action))
        moving = np.arange(len(action))
        for _ in range(sweeps):
            before = action[moving]
            for slot, rows in enumerate(self.rows_of_slot):
                others = reached[moving] - rows[action[moving, slot]]
                logits = self._logits(others[:, None] + rows, contexts[moving])
                best = logits.argmax(axis=1)
                action[moving, slot] = best
                reached[moving] = others + rows[best]
                value[moving] = logits[np.arange(len(best)), best]
            # A climb that a whole sweep did not move has reached its end.
            moving = moving[(action[moving] != before).any(axis=1)]
            if not moving.size:
                break
        shape = (len(self.given), len(starts))
        ends = value.reshape(shape).argmax(axis=1)
        best_end: Integers = action.reshape(*shape, -1)[np.arange(len(ends)), ends]
        return best_end

    def _logits(self, first: Weights, contexts: Integers) -> Numbers:
        """Return logits ``[m, M]``, less the head's bias, from the first layer's inputs.

        ``first`` is ``[m, M, H]``, and ``contexts [m]`` says which of the n contexts a row has.
        """
        np.maximum(first, 0, out=first)
        head = self.network.head_weight[None]
        if self.masks is not None:
            first *= self.masks[0][contexts][:, None]
            head = head * self.masks[1][contexts]
        second = first.reshape(-1, first.shape[-1]) @ self.network.second_weight
        second += self.network.second_bias
        np.maximum(second, 0, out=second)
        logits: Numbers = (second.reshape(first.shape) @ head[:, :, None])[:, :, 0]
        return logits
