"""Coordinate ascent on a value network, for joint actions that are too many to list."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.core.spaces.space import Space
from submax.networks.slot_choices import first_choices
from submax.networks.value_network import Numbers
from submax.policies.neural.value_belief import ACTIVATIONS_AT_ONCE, ValueBelief

Masks: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32]]


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
    found = np.empty((*context.shape[:2], starts.shape[-1]), dtype=np.int64)
    replicas, climbs, _ = starts.shape
    largest = max(belief.problem.space.choices)
    row_size = replicas * climbs * largest * belief.network.first_bias.shape[1]
    step = max(1, ACTIVATIONS_AT_ONCE // row_size)
    inputs = belief.inputs(context)
    for begin in range(0, context.shape[1], step):
        part = slice(begin, begin + step)
        of_part = None if masks is None else (masks[0][:, part], masks[1][:, part])
        found[:, part] = _climbed(belief, inputs[:, part], starts, sweeps, of_part)
    return found


def _climbed(
    belief: ValueBelief, inputs: Numbers, starts: Integers, sweeps: int, masks: Masks | None
) -> Integers:
    sizes = belief.problem.space.choices
    offsets, network = first_choices(sizes), belief.network
    replicas, rows, climbs = len(inputs), inputs.shape[1], starts.shape[1]
    action = np.repeat(starts[:, None], rows, axis=1)
    value = np.empty((replicas, rows, climbs))
    for _ in range(sweeps):
        before = action.copy()
        for slot, size in enumerate(sizes):
            candidate = np.repeat(action[:, :, :, None], size, axis=3)
            candidate[..., slot] = np.arange(size)
            joint = candidate.reshape(replicas, rows, climbs * size, len(sizes)) + offsets
            logits = network.logits(network.hidden(inputs, joint, masks))
            scores = logits.reshape(replicas, rows, climbs, size)
            action[..., slot] = scores.argmax(axis=-1)
            value = scores.max(axis=-1)
        if np.array_equal(action, before):
            break
    best = value.argmax(axis=-1)[..., None, None]
    chosen: Integers = np.take_along_axis(action, best, axis=2)[:, :, 0]
    return chosen
