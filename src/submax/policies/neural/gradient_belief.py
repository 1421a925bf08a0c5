"""A value network with a Gaussian uncertainty that is derived from its gradients."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.models.networks.slot_choices import first_choices
from submax.models.networks.value_network import Hidden, Numbers, ValueNetwork
from submax.policies.neural.value_belief import ValueBelief

ACTIVATIONS_AT_ONCE = 2**22
"""About how many activations are held in memory, 16 MB of float32, while the sums over the buffer
are computed; more rows are processed in parts."""

Weights = NDArray[np.float32]


@stored("gradient-belief")
class GradientBelief(NamedTuple):
    """The logit f(a, c) of a value network, with the variance g(a, c)ᵀ U⁻¹ g(a, c).

    g is the gradient of f with respect to all parameters. U, the ``precision``, is the diagonal of
    ρ I + Σ_i w_i g_i g_iᵀ over the observations, with weights w_i and ρ the ``ridge``. The gradient
    with respect to a weight is an activation times a slope. Hence the sum and the quadratic form
    are products of matrices of squares, and no gradient is ever stored.

    Reference: Zhou et al. (2020); Zhang et al. (2021), with the diagonal they use in practice.

    *Departs from the papers:* f is the logit of a network trained by cross-entropy, not by squared
    error, and g is not divided by the root of the network's width. Each update computes U again
    with the gradients of the newly trained network, whereas the papers add new gradients to those
    of earlier networks.
    """

    belief: ValueBelief
    precision: ValueNetwork

    @property
    def problem(self) -> Problem:
        """The problem that the network is trained for."""
        return self.belief.problem

    @classmethod
    def empty(cls, problem: Problem, replicas: int, hidden: int, ridge: float) -> Self:
        """The belief before any feedback: U = ρ I."""
        belief = ValueBelief.empty(problem, replicas, hidden)
        return cls(belief, _flat(belief.network, ridge))

    def restricted(self, choices: Choices) -> Self:
        """Return the belief about these choices alone."""
        kept = self.problem.space.kept_choices(choices)
        return self._replace(
            belief=self.belief.restricted(choices), precision=self.precision.restricted(kept)
        )

    def trained(
        self,
        feedback: Feedback,
        training: Training,
        ridge: float,
        rng: np.random.Generator,
    ) -> Self:
        """The belief after more feedback; the same object if the feedback has no rows."""
        belief = self.belief.trained(feedback, training, 0.0, rng)
        if belief is self.belief:
            return self
        return type(self)(belief, _summed(belief, ridge))

    def scores(self, context: Floats) -> tuple[Floats, Floats]:
        """The logit and its standard deviation for every joint action, both ``[R, n, M]``."""
        self.problem.check_context(context)
        network, choices = self.belief.network, self.belief.choices()
        given = self.belief.inputs(context)
        logits, deviations = [], []
        for part in self.belief.parts(context.shape[1]):
            hidden = network.hidden(given[:, part], choices)
            variance = _variance(network, self.precision, given[:, part], choices, hidden)
            logits.append(network.logits(hidden))
            deviations.append(np.sqrt(variance).astype(np.float64))
        return np.concatenate(logits, axis=1), np.concatenate(deviations, axis=1)


def _variance(
    network: ValueNetwork,
    precision: ValueNetwork,
    context: Numbers,
    choices: Integers,
    hidden: Hidden,
) -> Weights:
    """gᵀ U⁻¹ g, layer by layer: Σ (squared input · U⁻¹) · squared slope."""
    inverse = ValueNetwork(*(np.reciprocal(array) for array in precision))
    first, second = (slope**2 for slope in network.slopes(hidden))
    given = context.astype(np.float32) ** 2 @ inverse.context_weight + inverse.first_bias[:, None]
    chosen = inverse.choice_weight[:, choices].sum(axis=2)
    below = np.einsum("rnmh,rnh->rnm", first, given) + np.einsum("rnmh,rmh->rnm", first, chosen)
    flat = (hidden.first**2).reshape(len(first), -1, first.shape[-1]) @ inverse.second_weight
    middle = (flat.reshape(first.shape) + inverse.second_bias[:, None, None]) * second
    above = np.einsum("rnmh,rh->rnm", hidden.second**2, inverse.head_weight)
    total: Weights = below + middle.sum(axis=-1) + above + inverse.head_bias[:, None, None]
    return total


def _flat(network: ValueNetwork, ridge: float) -> ValueNetwork:
    return ValueNetwork(*(np.full(array.shape, ridge, dtype=np.float32) for array in network))


def _summed(belief: ValueBelief, ridge: float) -> ValueNetwork:
    """The diagonal of U, ρ + Σ_i w_i g_i², over all rows of the buffer."""
    buffer = belief.buffer
    total = _flat(belief.network, ridge)
    hidden = belief.network.first_bias.shape[1]
    rows = max(1, ACTIVATIONS_AT_ONCE // (len(buffer.filled) * hidden))
    for begin in range(0, buffer.reward.shape[1], rows):
        part = _squares(belief, slice(begin, begin + rows))
        total = ValueNetwork(*(one + other for one, other in zip(total, part, strict=True)))
    return total


def _squares(belief: ValueBelief, rows: slice) -> ValueNetwork:
    """Σ_i w_i g_i² over some rows of the buffer: products of squared inputs and squared slopes."""
    buffer, network = belief.buffer, belief.network
    choices = buffer.action[:, rows] + first_choices(belief.problem.space.choices)
    context = belief.inputs(buffer.context[:, rows].astype(np.float32, copy=False))
    hidden = network.hidden(context, choices[:, :, None])
    weight = buffer.weight[:, rows].astype(np.float32)[..., None]
    first, second = (slope[:, :, 0] ** 2 * weight for slope in network.slopes(hidden))
    columns = np.arange(network.choice_weight.shape[1])
    one_hot = (choices[..., None] == columns).any(axis=2).astype(np.float32)
    return ValueNetwork(
        one_hot.swapaxes(1, 2) @ first,
        (context**2).swapaxes(1, 2) @ first,
        first.sum(axis=1),
        (hidden.first[:, :, 0] ** 2).swapaxes(1, 2) @ second,
        second.sum(axis=1),
        (hidden.second[:, :, 0] ** 2 * weight).sum(axis=1),
        weight.sum(axis=(1, 2)),
    )
