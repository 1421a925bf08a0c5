"""A trained value network as numpy arrays."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.serialization import serializable
from submax.models.networks.choices import where_chosen

Weights = NDArray[np.float32]
Numbers = NDArray[np.floating[Any]]


@serializable("hidden")
class Hidden(NamedTuple):
    """The activations of both hidden layers, ``[R, n, M, H]``."""

    first: Weights
    second: Weights


@serializable("value-network")
class ValueNetwork(NamedTuple):
    """A network from choices and context to the logit of the reward, with two hidden ReLU layers.

    With C choices in all slots together, D context numbers and H hidden units, shapes are
    ``choice_weight
    [R, C, H]``, ``context_weight [R, D, H]``, ``first_bias [R, H]``, ``second_weight [R, H, H]``,
    ``second_bias [R, H]``, ``head_weight [R, H]``, ``head_bias [R]``.
    """

    choice_weight: Weights
    context_weight: Weights
    first_bias: Weights
    second_weight: Weights
    second_bias: Weights
    head_weight: Weights
    head_bias: Weights

    @classmethod
    def silent(cls, replicas: int, choices: int, width: int, hidden: int) -> Self:
        """Return an untrained network, in which every logit is 0."""
        shapes = (
            (replicas, choices, hidden),
            (replicas, width, hidden),
            (replicas, hidden),
            (replicas, hidden, hidden),
            (replicas, hidden),
            (replicas, hidden),
            (replicas,),
        )
        return cls(*(np.zeros(shape, dtype=np.float32) for shape in shapes))

    def restricted(self, kept: Integers) -> Self:
        """Return the network with only the choices ``kept`` among all C."""
        return self._replace(choice_weight=self.choice_weight[:, kept])

    def where(self, chosen: Booleans, other: Self) -> Self:
        """Return this network in the replicas ``chosen [R]``, and the other one elsewhere."""
        return type(self)(*where_chosen(chosen, self, other))

    def hidden(
        self, context: Numbers, choices: Integers, masks: tuple[Weights, Weights] | None = None
    ) -> Hidden:
        """Return the activations for contexts ``[R, n, D]`` and M actions.

        ``choices`` are the indices of the actions' choices among all C: ``[M, S]`` if all rows have
        the same actions, else ``[R, n, M, S]``. ``masks``, each ``[R, n or 1, H]``, multiply the
        activations of the two layers, for dropout.
        """
        replicas = np.arange(len(self.choice_weight))[:, None, None]
        if choices.ndim == 2:
            chosen = self.choice_weight[:, choices].sum(axis=2)[:, None]
        else:
            rows = choices.reshape(len(self.choice_weight), -1, choices.shape[-1])
            gathered = self.choice_weight[replicas, rows].sum(axis=2)
            chosen = gathered.reshape(*choices.shape[:3], gathered.shape[-1])
        first = np.maximum(self.from_context(context)[:, :, None, :] + chosen, 0)
        if masks is not None:
            first *= masks[0][:, :, None, :]
        flat = first.reshape(first.shape[0], -1, first.shape[-1])
        second = (flat @ self.second_weight).reshape(first.shape)
        second += self.second_bias[:, None, None]
        np.maximum(second, 0, out=second)
        if masks is not None:
            second *= masks[1][:, :, None, :]
        return Hidden(first, second)

    def from_context(self, context: Numbers) -> Weights:
        """Return the part of the first layer's input that the context gives, ``[R, n, H]``."""
        inputs: Weights = context.astype(np.float32) @ self.context_weight
        inputs += self.first_bias[:, None]
        return inputs

    def of_replica(self, replica: int) -> Self:
        """Return the arrays of one replica, without the axis R."""
        return type(self)(*(array[replica] for array in self))

    def logits(self, hidden: Hidden) -> Floats:
        """Return the logit of the reward for these activations: ``[R, n, M]``."""
        out = np.einsum("rnmh,rh->rnm", hidden.second, self.head_weight)
        logits: Floats = (out + self.head_bias[:, None, None]).astype(np.float64)
        return logits

    def slopes(self, hidden: Hidden) -> Hidden:
        """Return derivatives of the logit by the inputs of each layer's ReLU, ``[R, n, M, H]``."""
        second = self.head_weight[:, None, None] * (hidden.second > 0)
        flat = second.reshape(len(second), -1, second.shape[-1])
        first = (flat @ self.second_weight.swapaxes(1, 2)).reshape(second.shape)
        return Hidden(first * (hidden.first > 0), second)
