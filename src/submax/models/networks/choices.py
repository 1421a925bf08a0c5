"""Trained networks over slots of choices, as numpy arrays."""

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.conditioning import ConditionalDistribution
from submax.core.serialization import serializable

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
        return np.add.reduce(probabilities, axis=-2) * (1 / draws)
    slots = np.split(probabilities, first_choices(sizes)[1:], axis=-1)
    root = math.sqrt(math.prod(sizes))
    half = min(range(1, len(sizes)), key=lambda slot: abs(math.log(math.prod(sizes[:slot]) / root)))
    left, right = _outer(slots[:half]), _outer(slots[half:])
    # The division comes before the product, where the array is small.
    joint: Floats = (left * (1 / draws)).swapaxes(-1, -2) @ right
    return joint.reshape(*joint.shape[:-2], math.prod(sizes))


@functools.cache
def first_choices(sizes: Sizes) -> Integers:
    """Return the index of each slot's first choice among all C choices."""
    return np.cumsum((0, *sizes[:-1]))


def _outer(slots: list[Floats]) -> Floats:
    """Return joint probabilities of some slots in every part: ``[..., Z, Π K_s]``."""
    joint = slots[0]
    for slot in slots[1:]:
        size = joint.shape[-1] * slot.shape[-1]
        joint = (joint[..., :, None] * slot[..., None, :]).reshape(*joint.shape[:-1], size)
    return joint


Parameters: TypeAlias = NDArray[np.float32]
"""All parameters of a network, ``[R, P]``."""


@dataclass(frozen=True)
class DecodedChoices(ConditionalDistribution):
    """The probabilities of all C choices in slots of these ``sizes``, ``[R, L, n, Z, C]``."""

    probabilities: Floats
    sizes: tuple[int, ...]

    def prob(self, action: Integers) -> Floats:
        replicas, levels, rows, draws, choices = self.probabilities.shape
        first = np.arange(0, self.probabilities.size, choices)
        first = first.reshape(replicas, levels, rows, draws, 1)
        choice = (action + first_choices(self.sizes))[:, None, :, None]
        entries = self.probabilities.reshape(self.probabilities.size)
        product = entries.take(first + choice[..., 0])
        for slot in range(1, len(self.sizes)):
            product *= entries.take(first + choice[..., slot])
        return np.add.reduce(product, axis=3).swapaxes(1, 2) * (1 / draws)

    def sample(self, level: int, count: int, rng: np.random.Generator) -> Integers:
        """Select a part z of the mixture, then a choice in each slot by inversion.

        The probabilities of a slot sum to 1. So the cumulative sum over all parts is one sorted
        list, in which slot s of part k lies between kS + s and kS + s + 1; one binary search serves
        all draws.
        """
        replicas, _, rows, draws, choices = self.probabilities.shape
        slots, shape = len(self.sizes), (replicas, rows, count)
        part = rng.integers(draws, size=shape) if draws > 1 else np.zeros(shape, dtype=np.int64)
        part += (np.arange(replicas * rows) * draws).reshape(replicas, rows, 1)
        wanted = rng.random((*shape, slots)) + (part[..., None] * slots + np.arange(slots))
        # The sums start anew in each part, so each part begins exactly at a whole number.
        flat = self.probabilities[:, level].reshape(replicas * rows * draws, choices)
        rising = flat.cumsum(axis=1)
        rising += (np.arange(len(rising)) * slots)[:, None]
        result = np.searchsorted(rising.ravel(), wanted.ravel(), side="right").reshape(wanted.shape)
        first = part[..., None] * choices + first_choices(self.sizes)
        # Rounding may move a border between slots; then the nearest choice of the slot is taken.
        return np.clip(result - first, 0, np.array(self.sizes) - 1)

    def rows(self, row: Integers) -> "DecodedChoices":
        replica = np.arange(len(row))[:, None]
        chosen = self.probabilities[replica, :, row]
        return DecodedChoices(chosen.swapaxes(1, 2), self.sizes)


INJECTION_FORMS = ("modulation", "gate", "concatenation", "input-concatenation")
"""The ways in which a reward enters the layers of a network."""

Weights = NDArray[np.float32]


@serializable("slot-network")
class SlotNetwork(NamedTuple):
    """Logits of every choice in every slot, at L reward levels and Z draws of the latent variable.

    At a fixed level every form of injection is a plain layer, so each level has its own weights.
    The latent draws are fixed, so their contribution to the first layer is part of its bias. With D
    context numbers, H hidden units and C choices in all slots together, shapes are ``context_weight
    [R, L, D, H]``, ``first_bias [R, L, Z, H]``, ``second_weight [R, L, H, H]``, ``second_bias
    [R, L, 1, H]``, ``head_weight [R, 1, H, C]``, ``head_bias [R, 1, 1, C]``.
    """

    context_weight: Weights
    first_bias: Weights
    second_weight: Weights
    second_bias: Weights
    head_weight: Weights
    head_bias: Weights

    @classmethod
    def silent(
        cls, replicas: int, levels: int, draws: int, width: int, hidden: int, choices: int
    ) -> Self:
        """Return an untrained network, in which every choice has logit 0."""
        shapes = (
            (replicas, levels, width, hidden),
            (replicas, levels, draws, hidden),
            (replicas, levels, hidden, hidden),
            (replicas, levels, 1, hidden),
            (replicas, 1, hidden, choices),
            (replicas, 1, 1, choices),
        )
        return cls(*(np.zeros(shape, dtype=np.float32) for shape in shapes))

    def restricted(self, kept: Integers) -> Self:
        return self._replace(
            head_weight=self.head_weight[..., kept], head_bias=self.head_bias[..., kept]
        )

    def logits(self, context: Floats) -> Weights:
        """Return the logits of all choices: ``[R, n, D] -> [R, L, n, Z, C]``."""
        replicas, levels, _, hidden = self.context_weight.shape
        rows, draws = context.shape[1], self.first_bias.shape[2]
        from_context = context.astype(np.float32)[:, None] @ self.context_weight
        first = from_context[:, :, :, None, :] + self.first_bias[:, :, None]
        np.maximum(first, 0, out=first)
        second = first.reshape(replicas, levels, rows * draws, hidden) @ self.second_weight
        second += self.second_bias
        np.maximum(second, 0, out=second)
        logits: Weights = np.matmul(second, self.head_weight)
        logits += self.head_bias
        return logits.reshape(replicas, levels, rows, draws, logits.shape[-1])
