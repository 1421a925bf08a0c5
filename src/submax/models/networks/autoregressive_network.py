"""A trained autoregressive network over slots, conditioned on the reward level, as numpy arrays."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats
from submax.core.running.stored import stored
from submax.models.networks.replicas import where_chosen
from submax.models.networks.slot_choices import first_choices

Weights = NDArray[np.float32]


@stored("autoregressive-network")
class AutoregressiveNetwork(NamedTuple):
    """Logits of every choice of a slot, given the choices of the slots before, at L reward levels.

    With S slots, C choices in all of them together, D context numbers and H hidden units, shapes
    are ``choice_weight [R, L, C, H]``, ``slot_bias [R, L, S, H]``, ``context_weight [R, L, D, H]``,
    ``second_weight [R, L, H, H]``, ``second_bias [R, L, 1, H]``, ``head_weight [R, 1, H, C]``,
    ``head_bias [R, 1, 1, C]``.
    """

    choice_weight: Weights
    slot_bias: Weights
    context_weight: Weights
    second_weight: Weights
    second_bias: Weights
    head_weight: Weights
    head_bias: Weights

    @classmethod
    def silent(
        cls, replicas: int, levels: int, sizes: tuple[int, ...], width: int, hidden: int
    ) -> Self:
        """Return an untrained network, in which every choice has logit 0."""
        choices = sum(sizes)
        shapes = (
            (replicas, levels, choices, hidden),
            (replicas, levels, len(sizes), hidden),
            (replicas, levels, width, hidden),
            (replicas, levels, hidden, hidden),
            (replicas, levels, 1, hidden),
            (replicas, 1, hidden, choices),
            (replicas, 1, 1, choices),
        )
        return cls(*(np.zeros(shape, dtype=np.float32) for shape in shapes))

    def where(self, chosen: Booleans, other: Self) -> Self:
        """Return this network in the replicas ``chosen [R]``, and the other one elsewhere."""
        return type(self)(*where_chosen(chosen, self, other))

    def given(self, context: Floats) -> Floats:
        """Return what the context adds to the first layer: ``[R, n, D] -> [R, L, n, H]``.

        The result, and all that follows from it, is float64: a product of matrices rounds
        differently for different numbers of rows, and in float32 the difference would be seen.
        """
        given: Floats = context.astype(np.float64)[:, None] @ self.context_weight
        return given

    def slot_probabilities(self, reached: Floats, slot: int, sizes: tuple[int, ...]) -> Floats:
        """Return the probabilities of a slot's choices: ``[R, L, m, H] -> [R, L, m, K]``.

        ``reached`` is what the context and the choices of earlier slots add to the first layer, for
        m combinations of them. All levels of a replica are evaluated if ``reached`` has L of them.
        """
        begin = int(first_choices(sizes)[slot])
        end = begin + sizes[slot]
        # In place where possible, because most of the time goes into reading and writing arrays.
        hidden = reached + self.slot_bias[:, :, slot : slot + 1]
        np.maximum(hidden, 0, out=hidden)
        hidden = hidden @ self.second_weight
        hidden += self.second_bias
        np.maximum(hidden, 0, out=hidden)
        mass: Floats = hidden @ self.head_weight[..., begin:end]
        mass += self.head_bias[..., begin:end]
        mass -= np.maximum.reduce(mass, axis=-1, keepdims=True)
        np.exp(mass, out=mass)
        mass /= np.add.reduce(mass, axis=-1, keepdims=True)
        return mass

    def of_slot(self, slot: int, sizes: tuple[int, ...]) -> Weights:
        """Return what each choice of a slot adds to the first layer: ``[R, L, K, H]``."""
        begin = int(first_choices(sizes)[slot])
        return self.choice_weight[:, :, begin : begin + sizes[slot]]

    def at_level(self, level: int) -> Self:
        """Return the network at one level, which keeps its axis."""
        one = slice(level, level + 1)
        return self._replace(
            choice_weight=self.choice_weight[:, one],
            slot_bias=self.slot_bias[:, one],
            context_weight=self.context_weight[:, one],
            second_weight=self.second_weight[:, one],
            second_bias=self.second_bias[:, one],
        )
