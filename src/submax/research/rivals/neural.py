"""Policies on value networks: ε-greedy, NeuralUCB and neural Thompson sampling."""

import math
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import scipy
from numpy.polynomial import legendre

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import BelowOne, Count, NonNegative, Positive, Probability
from submax.core.numerics import highest
from submax.core.policy import PolicyState, PolicyTraits, TabularPolicy
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.models.networks.choices import first_choices
from submax.models.training_settings import Training
from submax.research.rivals.value_networks import (
    Hidden,
    Numbers,
    ValueBelief,
    ValueNetwork,
    ValueNetworkPolicy,
    Weights,
    highest_at_random,
)

REACH = 7.5
"""Number of standard deviations beyond which a normal variable is neglected: Φ(−7.5) ≈ 3e-14."""
NEGLIGIBLE = 1e-13
"""Probabilities below this are neglected."""
BISECTIONS = 10
"""Bisection steps for the lower limit; it need not be exact, only low enough."""
NODES_PER_PANEL = 16
FEWEST_PANELS = 4
PANEL_WIDTH = 0.6
"""The largest logarithmic width of a panel that keeps the error below 1e-9; the tests check it."""
NUMBERS_PER_CHUNK = 2**20
"""About how many numbers an intermediate array holds, 8 MB, whatever the size of the problem."""


def largest_normal(mean: Floats, deviation: Floats) -> Floats:
    """Probability that each of the N(mean, deviation²) is the largest: ``[..., K] -> [..., K]``.

    It is ∫ f_k Π_{j≠k} F_j, by quadrature on an axis that begins where the largest variable
    almost certainly lies above and is stretched by exp. The error is below 1e-9.

    >>> largest_normal(np.array([0.0, 0.0, -50.0]), np.array([1.0, 3.0, 1.0])).round(8).tolist()
    [0.5, 0.5, 0.0]
    """
    size = mean.shape[-1]
    means, deviations = mean.reshape(-1, size), deviation.reshape(-1, size)
    result = np.empty(means.shape)
    rows = max(1, NUMBERS_PER_CHUNK // (size * NODES_PER_PANEL * FEWEST_PANELS))
    for first in range(0, len(means), rows):
        block = slice(first, first + rows)
        result[block] = _largest(means[block], deviations[block])
    return result.reshape(mean.shape)


class NormalRivals(NamedTuple):
    """Variables N(``mean``, ``deviation``²) in N rows, and the axis to integrate over.

    ``random [N, K]`` are the variables with a density. The axis has its lower limit ``start``, the
    smallest deviation ``unit`` of a variable that reaches it, and the logarithmic length
    ``stretch``. Means are relative to the variable that sets the start: differences far below the
    means stay exact.
    """

    mean: Floats
    deviation: Floats
    random: Booleans
    start: Floats
    unit: Floats
    stretch: Floats

    @classmethod
    def of(cls, mean: Floats, deviation: Floats) -> Self:
        """Return the rivals with a start that is as high as possible."""
        leader = np.argmax(mean - REACH * deviation, axis=-1)
        mean = mean - np.take_along_axis(mean, leader[:, None], axis=-1)
        rivals = cls._from(mean, deviation, (mean - REACH * deviation).max(axis=-1))
        low, high = np.zeros(len(mean)), np.ones(len(mean))
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            below = rivals.below(rivals.point(middle[:, None])).prod(axis=-1)[:, 0]
            low, high = np.where(below < NEGLIGIBLE, (middle, high), (low, middle))
        return cls._from(mean, deviation, rivals.point(low[:, None])[:, 0])

    @classmethod
    def _from(cls, mean: Floats, deviation: Floats, start: Floats) -> Self:
        upper, random = mean + REACH * deviation, deviation > 0
        reaches = random & (upper >= start[:, None])
        narrowest = np.where(reaches, deviation, np.inf).min(axis=-1)
        unit = np.where(np.isfinite(narrowest), narrowest, 1.0)
        stretch = np.log1p(np.maximum(upper.max(axis=-1) - start, 0.0) / unit)
        return cls(mean, np.where(random, deviation, 1.0), random, start, unit, stretch)

    def of_rows(self, rows: Integers) -> Self:
        """Return some of the rows."""
        parts: list[Any] = [part[rows] for part in self]
        return type(self)(*parts)

    def point(self, share: Floats) -> Floats:
        """Return the points at these shares of the axis: ``[N or 1, m] -> [N, m]``."""
        return self.start[:, None] + self.unit[:, None] * np.expm1(self.stretch[:, None] * share)

    def below(self, point: Floats) -> Floats:
        """F of every variable at ``point [N, m]``, 1 for constants: ``[N, m, K]``."""
        below: Floats = scipy.special.ndtr(self._standardized(point))
        if not self.random.all():
            below[~np.broadcast_to(self.random[:, None, :], below.shape)] = 1.0
        return below

    def density(self, point: Floats) -> Floats:
        """The density f of every variable at ``point [N, m]``, 0 for constants: ``[N, m, K]``."""
        density: Floats = np.exp(-0.5 * self._standardized(point) ** 2)
        height = np.where(self.random, 1 / (math.sqrt(2 * math.pi) * self.deviation), 0.0)
        density *= height[:, None, :]
        return density

    def _standardized(self, point: Floats) -> Floats:
        return (point[:, :, None] - self.mean[:, None, :]) / self.deviation[:, None, :]


def _largest(mean: Floats, deviation: Floats) -> Floats:
    rivals = NormalRivals.of(mean, deviation)
    needed = np.maximum(np.ceil(rivals.stretch / PANEL_WIDTH), FEWEST_PANELS)
    panels = np.exp2(np.ceil(np.log2(needed))).astype(np.int64)
    # A constant is the largest if all variables with a density lie below the start.
    constant = ~rivals.random & (rivals.mean >= rivals.start[:, None])
    ties = np.maximum(constant.sum(axis=-1, keepdims=True), 1)
    probability = constant * rivals.below(rivals.start[:, None]).prod(axis=-1) / ties
    for count in np.unique(panels):
        rows = np.flatnonzero(panels == count)
        probability[rows] += _integrals(rivals.of_rows(rows), int(count))
    return probability / probability.sum(axis=-1, keepdims=True)


def _integrals(rivals: NormalRivals, panels: int) -> Floats:
    """Return ∫ f_k Π_{j≠k} F_j, ``[N, K]``, by blocks of nodes of bounded size."""
    total = np.zeros(rivals.mean.shape)
    step = max(1, NUMBERS_PER_CHUNK // rivals.mean.size)
    stretch, unit = rivals.stretch[:, None], rivals.unit[:, None]
    nodes, weights = _rule(panels)
    for first in range(0, len(nodes), step):
        node, weight = nodes[first : first + step], weights[first : first + step]
        point = rivals.point(node[None])
        below = rivals.below(point)
        # Above the start every F is at least Φ(−7.5), so F_k can be divided out again.
        speed = weight * stretch * unit * np.exp(stretch * node) * below.prod(axis=-1)
        total += np.einsum("nmk,nm->nk", rivals.density(point) / below, speed)
    return total


@cache
def _rule(panels: int) -> tuple[Floats, Floats]:
    node, weight = legendre.leggauss(NODES_PER_PANEL)
    starts = np.arange(panels)[:, None]
    return ((starts + (node + 1) / 2) / panels).ravel(), np.tile(weight, panels) / (2 * panels)


class ScoredState(PolicyState, Protocol):
    """What is learned, with a value and a standard deviation of every joint action."""

    def scores(self, context: Floats) -> tuple[Floats, Floats]:
        """Return both, ``[R, n, M]``, or ``[R, 1, M]`` for all rows."""


Scored = TypeVar("Scored", bound=ScoredState)


class NormalSampling(TabularPolicy[Scored]):
    """Draw a normal value for each action, and take the action with the largest.

    Its deviation is ``scale`` times that of the state. Probabilities are computed by quadrature.
    """

    scale: NonNegative

    def act(self, state: Scored, context: Floats, rng: np.random.Generator) -> ChosenActions:
        value, deviation = state.scores(context)
        score = value + self.scale * deviation * rng.normal(size=value.shape)
        # Ties occur if all actions are certain, and between all of them before any feedback.
        return ChosenActions(state.problem.space.action(highest_at_random(score, rng)), None)

    def probabilities(self, state: Scored, context: Floats) -> Floats:
        value, deviation = state.scores(context)
        return largest_normal(value, np.broadcast_to(self.scale * deviation, value.shape))


@dataclass(frozen=True)
class NeuralEpsilonGreedy(ValueNetworkPolicy[ValueBelief], TabularPolicy[ValueBelief]):
    """Explore uniformly with probability ε, otherwise take the highest value in this context.

    π(a | c) = ε / M + (1 − ε) / T if a is one of the T actions with the highest f(a, c), otherwise
    ε / M. M is the number of joint actions, ε is ``epsilon``. f is the logit of a value network
    with two layers of ``hidden`` units, trained as ``training`` says, with the probability
    ``dropout`` of leaving out a unit in training.

    Reference: Xu et al. (2024), section 4.2.
    """

    epsilon: Probability = 0.1
    dropout: BelowOne = field(default=0.1, kw_only=True)

    def probabilities(self, state: ValueBelief, context: Floats) -> Floats:
        greedy = highest(state.logits(context))
        return self.epsilon / greedy.shape[-1] + (1 - self.epsilon) * greedy


GRADIENTS_AT_ONCE = 2**22
"""About how many activations are held in memory, 16 MB of float32, while the sums over the buffer
are computed; more rows are processed in parts."""


@serializable("gradient-belief")
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
        inputs = self.belief.inputs(context)
        logits, deviations = [], []
        for part in self.belief.parts(context.shape[1]):
            hidden = network.hidden(inputs[:, part], choices)
            variance = _variance(network, self.precision, inputs[:, part], choices, hidden)
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
    spread = context.astype(np.float32) ** 2 @ inverse.context_weight + inverse.first_bias[:, None]
    chosen = inverse.choice_weight[:, choices].sum(axis=2)
    below = np.einsum("rnmh,rnh->rnm", first, spread) + np.einsum("rnmh,rmh->rnm", first, chosen)
    flat = (hidden.first**2).reshape(len(first), -1, first.shape[-1]) @ inverse.second_weight
    middle = (flat.reshape(first.shape) + inverse.second_bias[:, None, None]) * second
    above = np.einsum("rnmh,rh->rnm", hidden.second**2, inverse.head_weight)
    return below + middle.sum(axis=-1) + above + inverse.head_bias[:, None, None]


def _flat(network: ValueNetwork, ridge: float) -> ValueNetwork:
    return ValueNetwork(*(np.full(array.shape, ridge, dtype=np.float32) for array in network))


def _summed(belief: ValueBelief, ridge: float) -> ValueNetwork:
    """The diagonal of U, ρ + Σ_i w_i g_i², over all rows of the buffer."""
    buffer = belief.buffer
    total = _flat(belief.network, ridge)
    hidden = belief.network.first_bias.shape[1]
    rows = max(1, GRADIENTS_AT_ONCE // (len(buffer.filled) * hidden))
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


@dataclass(frozen=True, kw_only=True)
class GradientFeaturePolicy(TabularPolicy[GradientBelief]):
    """A policy that decides by the mean and the deviation that a `GradientBelief` gives.

    ``hidden`` is the number of units in each of the value network's two layers, and ``ridge`` the
    prior precision of the gradient features.
    """

    ridge: Positive = 1.0
    hidden: Count = 32
    training: Training = field(default_factory=Training)

    traits = PolicyTraits(trains_models=True)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> GradientBelief:
        return GradientBelief.empty(problem, replicas, self.hidden, self.ridge)

    def update(
        self, state: GradientBelief, feedback: Feedback, rng: np.random.Generator
    ) -> GradientBelief:
        return state.trained(feedback, self.training, self.ridge, rng)


@dataclass(frozen=True)
class NeuralUCB(GradientFeaturePolicy):
    """Take the action with the highest upper confidence bound, f(a, c) + γ √(gᵀ U⁻¹ g).

    f is the logit of a value network with two layers of ``hidden`` units, trained as ``training``
    says. g is the gradient of f with respect to the network's parameters, U the diagonal of
    ρ I + Σ g gᵀ over the observations. ρ is ``ridge``; γ is ``width``: the larger, the more is
    explored. Actions with equal bounds share the probability, as all do before the first feedback.

    Reference: Zhou et al. (2020). `GradientBelief` says where it departs from the paper.
    """

    width: NonNegative = 0.1

    def probabilities(self, state: GradientBelief, context: Floats) -> Floats:
        logit, deviation = state.scores(context)
        return highest(logit + self.width * deviation)


@dataclass(frozen=True)
class NeuralThompson(GradientFeaturePolicy, NormalSampling[GradientBelief]):
    """Draw a value N(f(a, c), ν² gᵀ U⁻¹ g) for each action and take the action with the largest.

    f is the logit of a value network with two layers of ``hidden`` units, trained as ``training``
    says. g is the gradient of f with respect to the network's parameters, U the diagonal of
    ρ I + Σ g gᵀ over the observations. ρ is ``ridge``; ν is ``scale``: the larger, the more is
    explored. π(a | c), the probability that a's draw is the largest, is computed by quadrature.

    Reference: Zhang et al. (2021). `GradientBelief` says where it departs from the paper.
    """

    scale: NonNegative = 0.1
