"""Policies on value networks: ε-greedy, upper bounds, draws from beliefs, and climbing."""

import math
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np
import scipy
from numpy.polynomial import legendre

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import BelowOne, Count, NonNegative, Positive, Probability
from submax.core.errors import InputError
from submax.core.numerics import highest
from submax.core.policy import PolicyState, PolicyTraits, TabularPolicy
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.rewards import Continuous
from submax.core.serialization import serializable
from submax.core.spaces import Choices, Space
from submax.models.networks.choices import first_choices, parameters_where, where_chosen
from submax.models.training_settings import Training
from submax.research.rivals.value_networks import (
    Hidden,
    Numbers,
    ValueBelief,
    ValueNetwork,
    ValueNetworkPolicy,
    Weights,
    highest_at_random,
    reward_shares,
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
FIRST_SQUARE = 1.0
"""The sum of squared residuals of an action begins with this, the largest squared residual of
rewards between 0 and 1, as in the paper's algorithm."""


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


def _largest(mean: Floats, deviation: Floats) -> Floats:
    """The probabilities for N rows of K variables; a variable of deviation 0 is a constant."""
    # Means are relative to the variable that sets the start of the axis: differences far below the
    # means stay exact.
    leader = np.argmax(mean - REACH * deviation, axis=-1)
    mean = mean - np.take_along_axis(mean, leader[:, None], axis=-1)
    upper, random = mean + REACH * deviation, deviation > 0
    width = np.where(random, deviation, 1.0)

    def axis(start: Floats) -> tuple[Floats, Floats]:
        """The smallest deviation of variables that reach the axis, and its logarithmic length."""
        reaches = random & (upper >= start)
        narrowest = np.where(reaches, deviation, np.inf).min(axis=-1, keepdims=True)
        unit = np.where(np.isfinite(narrowest), narrowest, 1.0)
        length = np.maximum(upper.max(axis=-1, keepdims=True) - start, 0.0)
        return unit, np.log1p(length / unit)

    def below(point: Floats) -> Floats:
        """F of every variable at ``point [N, m]``, 1 for constants: ``[N, m, K]``."""
        standardized = (point[:, :, None] - mean[:, None]) / width[:, None]
        return np.where(random[:, None], scipy.special.ndtr(standardized), 1.0)

    start = (mean - REACH * deviation).max(axis=-1, keepdims=True)
    unit, stretch = axis(start)
    low, high = np.zeros(start.shape), np.ones(start.shape)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        chance = below(start + unit * np.expm1(stretch * middle)).prod(axis=-1)
        low, high = np.where(chance < NEGLIGIBLE, (middle, high), (low, middle))
    start = start + unit * np.expm1(stretch * low)
    unit, stretch = axis(start)
    needed = max(math.ceil(stretch.max() / PANEL_WIDTH), FEWEST_PANELS)
    nodes, weights = _rule(2 ** math.ceil(math.log2(needed)))
    # A constant is the largest if all variables with a density lie below the start.
    constant = ~random & (mean >= start)
    ties = np.maximum(constant.sum(axis=-1, keepdims=True), 1)
    probability = constant * below(start).prod(axis=-1) / ties
    height = np.where(random, 1 / (math.sqrt(2 * math.pi) * width), 0.0)
    step = max(1, NUMBERS_PER_CHUNK // mean.size)
    for first in range(0, len(nodes), step):
        node, weight = nodes[first : first + step], weights[first : first + step]
        point = start + unit * np.expm1(stretch * node)
        lower = below(point)
        # Above the start every F is at least Φ(−7.5), so F_k can be divided out again.
        speed = weight * stretch * unit * np.exp(stretch * node) * lower.prod(axis=-1)
        standardized = (point[:, :, None] - mean[:, None]) / width[:, None]
        density = height[:, None] * np.exp(-0.5 * standardized**2)
        probability += np.einsum("nmk,nm->nk", density / lower, speed)
    return probability / probability.sum(axis=-1, keepdims=True)


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


@serializable("residual-belief")
class ResidualBelief(NamedTuple):
    """The value v(a, c) of a network, with τ_a² = S_a / n_a, the mean squared residual of action a.

    S_a is 1 plus the sum of (r_i − v_i(a, c_i))² over the observations of a, ``squares [R, M]``,
    and n_a their number, ``counts [R, M]``. The prediction v_i is that of the network from before
    observation i was learned from. Rewards are scaled to the range from 0 to 1, and v is the
    sigmoid of the network's output.

    Reference: Zhu and Rigotti (2021), algorithm 1.

    *Departs from the paper:* the network reads the action as an input, whereas the paper has one
    network for each action. Rewards come in batches, whose residuals all refer to the network
    before the batch. An action without observations counts as observed once.
    """

    belief: ValueBelief
    squares: Floats
    counts: Floats

    @property
    def problem(self) -> Problem:
        """The problem that the network is trained for."""
        return self.belief.problem

    @classmethod
    def empty(cls, problem: Problem, replicas: int, hidden: int) -> Self:
        """Return the belief before any feedback."""
        belief = ValueBelief.empty(problem, replicas, hidden)
        shape = (replicas, problem.space.size)
        return cls(belief, np.full(shape, FIRST_SQUARE), np.zeros(shape))

    def restricted(self, choices: Choices) -> Self:
        """Return the belief about the joint actions of these choices alone."""
        kept = self.problem.space.indices_of(choices)
        return self._replace(
            belief=self.belief.restricted(choices),
            squares=self.squares[:, kept],
            counts=self.counts[:, kept],
        )

    def trained(
        self, feedback: Feedback, training: Training, dropout: float, rng: np.random.Generator
    ) -> Self:
        """Return the belief after more feedback; the same object if the feedback has no rows."""
        belief = self.belief.trained(feedback, training, dropout, rng)
        if belief is self.belief:
            return self
        squares, counts = self.squares.copy(), self.counts.copy()
        replica, row = np.nonzero(feedback.weight > 0)
        action = self.problem.space.index(feedback.action[replica, row])
        reward = reward_shares(self.problem.scale, belief.buffer, feedback.reward)
        residual = (reward - self.belief.values_of(feedback))[replica, row]
        weight = feedback.weight[replica, row]
        np.add.at(squares, (replica, action), weight * residual**2)
        np.add.at(counts, (replica, action), weight)
        return type(self)(belief, squares, counts)

    def scores(self, context: Floats) -> tuple[Floats, Floats]:
        """Return v(a, c), ``[R, n, M]``, and its standard error τ_a / √n_a, ``[R, 1, M]``."""
        counts = np.maximum(self.counts, 1.0)
        return self.belief.values(context), np.sqrt(self.squares / counts**2)[:, None]


@dataclass(frozen=True)
class SampleAverageSampling(ValueNetworkPolicy[ResidualBelief], NormalSampling[ResidualBelief]):
    """Draw a value N(v(a, c), ν² τ_a² / n_a) for each action and take the action with the largest.

    v is the value network, τ_a² the mean squared residual of action a and n_a the number of its
    observations. ν is ``scale``, which is 1 in the paper: the larger, the more is explored.
    π(a | c), the probability that the draw of a is the largest, is computed by quadrature.

    Reference: Zhu and Rigotti (2021). `ResidualBelief` says where it departs from the paper.
    """

    scale: NonNegative = 1.0
    belief = ResidualBelief


@dataclass(frozen=True)
class SampleAverageUCB(ValueNetworkPolicy[ResidualBelief], TabularPolicy[ResidualBelief]):
    """Take the action with the highest upper confidence bound, v(a, c) + γ τ_a √(ln n / n_a).

    v is the value network, τ_a² the mean squared residual of action a, n_a the number of its
    observations and n that of all actions. γ is ``width``, which is 1 in the paper: the larger, the
    more is explored. Actions with equal bounds share the probability.

    Reference: Zhu and Rigotti (2021). `ResidualBelief` says where it departs from the paper.
    """

    width: NonNegative = 1.0
    belief = ResidualBelief

    def probabilities(self, state: ResidualBelief, context: Floats) -> Floats:
        value, error = state.scores(context)
        total = np.maximum(state.counts.sum(axis=1), 1.0)[:, None, None]
        return highest(value + self.width * np.sqrt(np.log(total)) * error)


SQUARES = Continuous(low=0.0, high=1.0)
"""Squared residuals of rewards that are scaled to the range from 0 to 1 lie in this range, too."""


@serializable("variance-belief")
class VarianceBelief(NamedTuple):
    """The value v(a, c) of one network, and s²(a, c), the squared residual that another predicts.

    The second network is trained on (r_i − v(a_i, c_i))² for all observations, with the same loss
    and the same training as the first one. Rewards are scaled to the range from 0 to 1.

    Reference: Rawson and Freeman (2021).

    *Departs from the paper:* both networks read the action as an input, and are trained again on
    all observations at each update. Squared residuals are predicted by a sigmoid, trained by
    cross-entropy, so s² cannot be negative.
    """

    mean: ValueBelief
    variance: ValueBelief

    @property
    def problem(self) -> Problem:
        """The problem that the networks are trained for."""
        return self.mean.problem

    @classmethod
    def empty(cls, problem: Problem, replicas: int, hidden: int) -> Self:
        """Return the belief before any feedback: all actions have the same value and variance."""
        squares = Problem(problem.space, problem.context_width, SQUARES)
        return cls(
            ValueBelief.empty(problem, replicas, hidden),
            ValueBelief.empty(squares, replicas, hidden),
        )

    def restricted(self, choices: Choices) -> Self:
        """Return the belief about these choices alone."""
        return self._replace(
            mean=self.mean.restricted(choices), variance=self.variance.restricted(choices)
        )

    def trained(
        self, feedback: Feedback, training: Training, dropout: float, rng: np.random.Generator
    ) -> Self:
        """Return the belief after more feedback; the same object if the feedback has no rows."""
        mean = self.mean.trained(feedback, training, dropout, rng)
        if mean is self.mean:
            return self
        buffer = mean.buffer
        reward = reward_shares(self.problem.scale, buffer, buffer.reward)
        learned = np.any(feedback.weight > 0, axis=1)
        squares = Feedback(
            buffer.context.astype(np.float64),
            buffer.action,
            np.clip((reward - mean.values_of(buffer)) ** 2, 0.0, 1.0),
            None,
            buffer.weight * learned[:, None],
        )
        old = self.variance
        fresh = ValueBelief.unlisted(old.problem, len(learned), old.network.head_weight.shape[1])
        new = fresh.trained(squares, training, dropout, rng)
        variance = old._replace(
            parameters=parameters_where(learned, new.parameters, old.parameters),
            network=new.network.where(learned, old.network),
            scaling=new.scaling if new.scaling is None else new.scaling.where(learned, old.scaling),
        )
        return type(self)(mean, variance)

    def scores(self, context: Floats) -> tuple[Floats, Floats]:
        """Return v(a, c) and s(a, c) of every joint action, both ``[R, n, M]``."""
        return self.mean.values(context), np.sqrt(self.variance.values(context))


@dataclass(frozen=True)
class VarianceNetworkUCB(ValueNetworkPolicy[VarianceBelief], TabularPolicy[VarianceBelief]):
    """Take the action with the highest upper confidence bound, v(a, c) + γ s(a, c).

    v is a value network with two layers of ``hidden`` units, trained as ``training`` says, with the
    probability ``dropout`` of leaving out a unit in training. s² is a second network of the same
    form, which predicts the squared residual of the first. γ is ``width``: the larger, the more is
    explored. Actions with equal bounds share the probability.

    Reference: Rawson and Freeman (2021). `VarianceBelief` says where it departs from the paper.
    """

    width: NonNegative = 0.1
    belief = VarianceBelief

    def probabilities(self, state: VarianceBelief, context: Floats) -> Floats:
        value, deviation = state.scores(context)
        return highest(value + self.width * deviation)


def dropout_masks(
    shape: tuple[int, int, int], dropout: float, rng: np.random.Generator
) -> tuple[Weights, Weights]:
    """Draw a mask for each layer: 0 for a unit that is left out, 1 / (1 − dropout) otherwise.

    ``shape`` is ``(replicas, masks, units)``.
    """
    kept = 1 - dropout
    drawn = rng.random((2, *shape)) < kept
    first, second = (drawn / kept).astype(np.float32)
    return first, second


@serializable("dropout-state")
class DropoutState(NamedTuple):
    """A value network, and P dropout masks of its first and second layer, each ``[R, P, H]``."""

    belief: ValueBelief
    first: Weights
    second: Weights

    @property
    def problem(self) -> Problem:
        """The problem that the network is trained for."""
        return self.belief.problem

    def restricted(self, choices: Choices) -> Self:
        """Return the network with these choices alone."""
        return self._replace(belief=self.belief.restricted(choices))


@dataclass(frozen=True)
class DropoutThompson(ValueNetworkPolicy[DropoutState], TabularPolicy[DropoutState]):
    """Apply a random dropout mask to a value network and take the action with the highest value.

    π(a | c) = Σ_m 1[a = argmax_b f(b, c; mask m)] / P. f is the logit of a value network with two
    layers of ``hidden`` units, trained as ``training`` says, with the probability ``dropout`` of
    leaving out a unit. P = ``masks`` masks are drawn at each update. A decision uses one of them,
    picked at random, for all its actions; this makes π the share of masks under which a has the
    highest value.

    Reference: Gal and Ghahramani (2016); Riquelme et al. (2018).
    """

    dropout: BelowOne = 0.1
    masks: Count = 100

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> DropoutState:
        belief = ValueBelief.empty(problem, replicas, self.hidden)
        return DropoutState(belief, *self._masks(replicas, rng))

    def act(self, state: DropoutState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        replicas, rows = context.shape[:2]
        picked = rng.integers(self.masks, size=(replicas, rows))[..., None]
        masks = (
            np.take_along_axis(state.first, picked, axis=1),
            np.take_along_axis(state.second, picked, axis=1),
        )
        index = highest_at_random(state.belief.logits(context, masks), rng)
        return ChosenActions(state.problem.space.action(index), None)

    def probabilities(self, state: DropoutState, context: Floats) -> Floats:
        total = np.zeros((*context.shape[:2], state.problem.space.size))
        for mask in range(self.masks):
            one = slice(mask, mask + 1)
            total += highest(
                state.belief.logits(context, (state.first[:, one], state.second[:, one]))
            )
        return total / self.masks

    def update(
        self, state: DropoutState, feedback: Feedback, rng: np.random.Generator
    ) -> DropoutState:
        belief = state.belief.trained(feedback, self.training, self.dropout, rng)
        if belief is state.belief:
            return state
        # Replicas without new rows keep their masks.
        learned = np.any(feedback.weight > 0, axis=1)
        drawn = self._masks(len(state.first), rng)
        return DropoutState(belief, *where_chosen(learned, drawn, (state.first, state.second)))

    def _masks(self, replicas: int, rng: np.random.Generator) -> tuple[Weights, Weights]:
        return dropout_masks((replicas, self.masks, self.hidden), self.dropout, rng)


CANDIDATE_ACTIVATIONS = 2**18
"""About how many activations one step of a climb holds: 1 MB of float32, so they stay in the
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
    masks: tuple[Weights, Weights] | None = None,
) -> Integers:
    """Return the action of the highest value that a climb finds in each context: ``[R, n, S]``.

    ``starts [R, T, S]`` are the actions at which T climbs begin in every context. A sweep sets one
    slot after the other to its best choice, given the choices of all other slots. The best end of
    the T climbs counts. ``masks`` are dropout masks of the two layers, ``[R, n, H]``.
    """
    belief.problem.check_context(context)
    network, sizes = belief.network, belief.problem.space.choices
    replicas, climbs, slots = starts.shape
    given = network.from_context(belief.inputs(context))
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
        self,
        network: ValueNetwork,
        sizes: tuple[int, ...],
        given: Weights,
        masks: tuple[Weights, Weights] | None,
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
        return action.reshape(*shape, -1)[np.arange(len(ends)), ends]

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
        return (second.reshape(first.shape) @ head[:, :, None])[:, :, 0]


@serializable("climbing-state")
class ClimbingState(NamedTuple):
    """A value network, the actions ``starts [R, T, S]`` at which climbs begin, and dropout masks.

    The ``masks`` of its two layers are ``[R, P, H]``; there are none without dropout.
    """

    belief: ValueBelief
    starts: Integers
    masks: tuple[Weights, ...] = ()

    @property
    def problem(self) -> Problem:
        """The problem that the network is trained for."""
        return self.belief.problem

    @property
    def learned(self) -> Booleans:
        """Which replicas have rows to learn from, ``[R, 1]``."""
        return (self.belief.buffer.filled > 0)[:, None]

    def restricted(self, choices: Choices) -> Self:
        """Return the network with these choices alone; climbs begin at choices among them."""
        sizes = [len(slot) for slot in choices]
        return self._replace(belief=self.belief.restricted(choices), starts=self.starts % sizes)


@dataclass(frozen=True, kw_only=True)
class ClimbingPolicy(ValueNetworkPolicy[ClimbingState]):
    """A policy on a value network that climbs from ``climbs`` random joint actions.

    They are drawn at every update. From each of them coordinate ascent sets one slot after the
    other to its best choice, at most ``sweeps`` times. No joint action is listed. Before the first
    feedback the policy is uniform.
    """

    dropout: BelowOne = 0.1
    climbs: Count = 4
    sweeps: Count = 4

    def drawn_masks(self, replicas: int, rng: np.random.Generator) -> tuple[Weights, ...]:
        """Draw the dropout masks of decisions until the next update; none by default."""
        return ()

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ClimbingState:
        check_choices(problem.space, f"the {type(self).__name__} policy")
        belief = ValueBelief.unlisted(problem, replicas, self.hidden)
        masks = self.drawn_masks(replicas, rng)
        return ClimbingState(belief, problem.space.uniform((replicas, self.climbs), rng), masks)

    def update(
        self, state: ClimbingState, feedback: Feedback, rng: np.random.Generator
    ) -> ClimbingState:
        belief = state.belief.trained(feedback, self.training, self.dropout, rng)
        if belief is state.belief:
            return state
        new = np.any(feedback.weight > 0, axis=1)
        masks = self.drawn_masks(len(new), rng)
        starts = state.problem.space.uniform(state.starts.shape[:2], rng)
        starts = np.where(new[:, None, None], starts, state.starts)
        return ClimbingState(belief, starts, tuple(where_chosen(new, masks, state.masks)))


@dataclass(frozen=True)
class ClimbingDropoutThompson(ClimbingPolicy):
    """Apply a random dropout mask to a value network and take the best action that climbing finds.

    π(a | c) = Σ_m 1[a = climb(c; mask m)] / P. P = ``masks`` masks are drawn at each update, and a
    decision uses one of them, picked at random, for all its actions. From each of ``climbs`` random
    joint actions, coordinate ascent sets one slot after the other to its best choice, at most
    ``sweeps`` times. No joint action is listed. Before the first feedback the policy is uniform.
    The network has two layers of ``hidden`` units, and ``dropout`` is the probability of leaving
    out a unit.

    Reference: Gal and Ghahramani (2016); Hill et al. (2017) on climbing over slots.
    """

    dropout: BelowOne = 0.1
    masks: Count = 20

    def drawn_masks(self, replicas: int, rng: np.random.Generator) -> tuple[Weights, ...]:
        return dropout_masks((replicas, self.masks, self.hidden), self.dropout, rng)

    def act(self, state: ClimbingState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        picked = rng.integers(self.masks, size=context.shape[:2])
        action = self._climbed(state, context, picked)
        uniform = state.problem.space.uniform(context.shape[:2], rng)
        return ChosenActions(np.where(state.learned[..., None], action, uniform), None)

    def log_prob(self, state: ClimbingState, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        share = np.zeros(context.shape[:2])
        for mask in range(self.masks):
            end = self._climbed(state, context, np.full(context.shape[:2], mask))
            share += (end == action).all(axis=-1) / self.masks
        uniform = np.exp(-state.problem.space.log_measure)
        with np.errstate(divide="ignore"):
            return np.log(np.where(state.learned, share, uniform))

    def _climbed(self, state: ClimbingState, context: Floats, picked: Integers) -> Integers:
        """Climb under the masks with the indices ``picked [R, n]``."""
        index = picked[..., None]
        first, second = (np.take_along_axis(one, index, axis=1) for one in state.masks)
        return climbed_actions(state.belief, context, state.starts, self.sweeps, (first, second))


@dataclass(frozen=True)
class ClimbingEpsilonGreedy(ClimbingPolicy):
    """Explore uniformly with probability ε, else take the best action that climbing finds.

    π(a | c) = ε / M + (1 − ε) 1[a = climb(c)], with M joint actions. The value of (action ⊕
    context) is learned by a network with two layers of ``hidden`` units and ``dropout`` in
    training. From each of ``climbs`` random joint actions, which are drawn at every update,
    coordinate ascent sets one slot after the other to its best choice, at most ``sweeps`` times.
    No joint action is listed. Before the first feedback the policy is uniform.

    Reference: Sutton and Barto (2018), section 2.2; Hill et al. (2017) on climbing over slots.
    """

    epsilon: Probability = 0.1

    def act(self, state: ClimbingState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        greedy = climbed_actions(state.belief, context, state.starts, self.sweeps)
        explores = (rng.random(greedy.shape[:2]) < self.epsilon) | ~state.learned
        uniform = state.problem.space.uniform(greedy.shape[:2], rng)
        action = np.where(explores[..., None], uniform, greedy)
        return ChosenActions(action, self._log_prob(state, greedy, action))

    def log_prob(self, state: ClimbingState, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        greedy = climbed_actions(state.belief, context, state.starts, self.sweeps)
        return self._log_prob(state, greedy, action)

    def _log_prob(self, state: ClimbingState, greedy: Integers, action: Integers) -> Floats:
        uniform = np.exp(-state.problem.space.log_measure)
        same = (greedy == action).all(axis=-1)
        mixed = self.epsilon * uniform + (1 - self.epsilon) * same
        with np.errstate(divide="ignore"):
            log_prob: Floats = np.log(np.where(state.learned, mixed, uniform))
        return log_prob
