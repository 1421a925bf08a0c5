"""Probabilities and random draws of joint actions, from logits of choices.

A joint action is drawn from a mixture of Z products over slots, with equal weights. In all arrays
the last axis holds the C choices of all slots, one slot after the other, and the axis Z before it
the parts of the mixture.
"""

import functools
import math

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers

Sizes = tuple[int, ...]
SMALLEST_TOTAL = 1e-200
"""If the sum of a slot is smaller than this, the slot needs a maximum of its own; see below."""


def choice_probabilities(logits: NDArray[np.float32], sizes: Sizes) -> Floats:
    """Return the softmax within each slot: ``[..., C] -> [..., C]``.

    >>> choice_probabilities(np.zeros(5, dtype=np.float32), (2, 3)).round(2).tolist()
    [0.5, 0.5, 0.33, 0.33, 0.33]
    """
    # Subtracting one maximum for all slots is faster, but a slot far below it would underflow.
    mass: Floats = np.exp(
        np.subtract(logits, np.maximum.reduce(logits, axis=-1, keepdims=True), dtype=np.float64)
    )
    if len(sizes) == 1:
        mass /= np.add.reduce(mass, axis=-1, keepdims=True)
        return mass
    total = np.add.reduceat(mass, first_choices(sizes), axis=-1)
    if total.min(initial=1.0) < SMALLEST_TOTAL:
        largest = np.maximum.reduceat(logits, first_choices(sizes), axis=-1)
        return choice_probabilities(logits - np.repeat(largest, sizes, axis=-1), sizes)
    mass /= np.repeat(total, sizes, axis=-1)
    return mass


def joint_probabilities(probabilities: Floats, sizes: Sizes) -> Floats:
    """Return the probability of every joint action: ``[..., Z, C] -> [..., M]``, last slot fastest.

    It is (1/Z) Σ_z Π_s p_zs. The slots are split into two groups of about √M joint choices each, so
    that the sum over z is a matrix product.
    """
    draws = probabilities.shape[-2]
    if len(sizes) == 1:
        mean: Floats = np.add.reduce(probabilities, axis=-2) * (1 / draws)
        return mean
    slots = np.split(probabilities, first_choices(sizes)[1:], axis=-1)
    half = _half(sizes)
    left, right = _outer(slots[:half]), _outer(slots[half:])
    # The division comes before the product, where the array is small.
    joint: Floats = (left * (1 / draws)).swapaxes(-1, -2) @ right
    return joint.reshape(*joint.shape[:-2], math.prod(sizes))


def action_probabilities(probabilities: Floats, action: Integers, sizes: Sizes) -> Floats:
    """Return the probability of actions ``[R, n, M, S]``: ``[R, L, n, Z, C] -> [R, n, L, M]``."""
    replicas, levels, rows, draws, choices = probabilities.shape
    first = np.arange(0, probabilities.size, choices).reshape(replicas, levels, rows, draws, 1)
    choice = (action + first_choices(sizes))[:, None, :, None]
    entries = probabilities.reshape(probabilities.size)
    product = entries.take(first + choice[..., 0])
    for slot in range(1, len(sizes)):
        product *= entries.take(first + choice[..., slot])
    mean: Floats = np.add.reduce(product, axis=3).swapaxes(1, 2) * (1 / draws)
    return mean


def draw_actions(
    probabilities: Floats, count: int, sizes: Sizes, rng: np.random.Generator
) -> Integers:
    """Draw joint actions: ``[R, n, Z, C] -> [R, n, count, S]``.

    Each draw selects a part of the mixture, then a choice in each slot by inversion. The
    probabilities of a slot sum to 1. So the cumulative sum over all parts is one sorted list, in
    which slot s of part k lies between kS + s and kS + s + 1; one binary search serves all draws.
    """
    replicas, rows, draws, choices = probabilities.shape
    slots = len(sizes)
    shape = (replicas, rows, count)
    part = rng.integers(draws, size=shape) if draws > 1 else np.zeros(shape, dtype=np.int64)
    part += (np.arange(replicas * rows) * draws).reshape(replicas, rows, 1)
    wanted = rng.random((*shape, slots)) + (part[..., None] * slots + np.arange(slots))
    # The sums start anew in each part, so that each part begins exactly at a whole number.
    rising = probabilities.reshape(replicas * rows * draws, choices).cumsum(axis=1)
    rising += (np.arange(len(rising)) * slots)[:, None]
    found = np.searchsorted(rising.ravel(), wanted.ravel(), side="right").reshape(wanted.shape)
    first = part[..., None] * choices + first_choices(sizes)
    # Rounding may move a border between slots; then the nearest choice of the slot is taken.
    choice: Integers = np.clip(found - first, 0, np.array(sizes) - 1)
    return choice


@functools.cache
def first_choices(sizes: Sizes) -> Integers:
    """Return the index of each slot's first choice among all C choices."""
    return np.cumsum((0, *sizes[:-1]))


def _half(sizes: Sizes) -> int:
    """Return the number of slots in the first group."""
    root = math.sqrt(math.prod(sizes))
    products = [math.prod(sizes[:slot]) for slot in range(1, len(sizes))]
    return 1 + min(range(len(products)), key=lambda one: abs(math.log(products[one] / root)))


def _outer(slots: list[Floats]) -> Floats:
    """Return joint probabilities of some slots in every part: ``[..., Z, Π K_s]``."""
    joint = slots[0]
    for slot in slots[1:]:
        size = joint.shape[-1] * slot.shape[-1]
        joint = (joint[..., :, None] * slot[..., None, :]).reshape(*joint.shape[:-1], size)
    return joint
