"""Policies on value networks: ε-greedy, upper bounds, and draws from beliefs."""

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
import scipy
from numpy.polynomial import legendre

from submax.core.arrays import Floats, Integers
from submax.core.checks import BelowOne, Count, NonNegative, Positive, Probability
from submax.core.numerics import highest, pieces, where_chosen
from submax.core.policy import TabularPolicy
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.rewards import Continuous
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.models.networks.choices import first_choices
from submax.policies.arm_statistics import by_rows
from submax.research.rivals.value_networks import (
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

    Deviations are positive. The probability is ∫ f_k Π_{j≠k} F_j, by quadrature on an axis that
    begins where the largest variable almost certainly lies above and is stretched by exp. The error
    is below 1e-9.

    >>> largest_normal(np.array([0.0, 0.0, -50.0]), np.array([1.0, 3.0, 1.0])).round(8).tolist()
    [0.5, 0.5, 0.0]
    """
    size = mean.shape[-1]
    means, deviations = mean.reshape(-1, size), deviation.reshape(-1, size)
    result = np.empty(means.shape)
    rows = max(1, NUMBERS_PER_CHUNK // (size * NODES_PER_PANEL * FEWEST_PANELS))
    for block in pieces(len(means), rows):
        result[block] = _largest(means[block], deviations[block])
    return result.reshape(mean.shape)


def _largest(mean: Floats, deviation: Floats) -> Floats:
    """The probabilities for N rows of K variables."""
    # Means are relative to the variable that sets the start of the axis: differences far below the
    # means stay exact.
    leader = np.argmax(mean - REACH * deviation, axis=-1)
    mean = mean - np.take_along_axis(mean, leader[:, None], axis=-1)
    upper = mean + REACH * deviation

    def axis(start: Floats) -> tuple[Floats, Floats]:
        """The smallest deviation of variables that reach the axis, and its logarithmic length."""
        unit = np.where(upper >= start, deviation, np.inf).min(axis=-1, keepdims=True)
        return unit, np.log1p((upper.max(axis=-1, keepdims=True) - start) / unit)

    def standardized(point: Floats) -> Floats:
        return (point[:, :, None] - mean[:, None]) / deviation[:, None]

    start = (mean - REACH * deviation).max(axis=-1, keepdims=True)
    unit, stretch = axis(start)
    low, high = np.zeros(start.shape), np.ones(start.shape)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        point = start + unit * np.expm1(stretch * middle)
        chance = scipy.special.ndtr(standardized(point)).prod(axis=-1)
        low, high = np.where(chance < NEGLIGIBLE, (middle, high), (low, middle))
    start = start + unit * np.expm1(stretch * low)
    unit, stretch = axis(start)
    needed = max(math.ceil(stretch.max() / PANEL_WIDTH), FEWEST_PANELS)
    nodes, weights = _rule(2 ** math.ceil(math.log2(needed)))
    probability = np.zeros(mean.shape)
    step = max(1, NUMBERS_PER_CHUNK // mean.size)
    for part in pieces(len(nodes), step):
        node, weight = nodes[part], weights[part]
        place = standardized(start + unit * np.expm1(stretch * node))
        density = np.exp(-0.5 * place**2) / (math.sqrt(2 * math.pi) * deviation[:, None])
        below = scipy.special.ndtr(place)
        # Above the start every F is at least Φ(−7.5), so F_k can be divided out again.
        speed = weight * stretch * unit * np.exp(stretch * node) * below.prod(axis=-1)
        probability += np.einsum("nmk,nm->nk", density / below, speed)
    return probability / probability.sum(axis=-1, keepdims=True)


@cache
def _rule(panels: int) -> tuple[Floats, Floats]:
    node, weight = legendre.leggauss(NODES_PER_PANEL)
    starts = np.arange(panels)[:, None]
    return ((starts + (node + 1) / 2) / panels).ravel(), np.tile(weight, panels) / (2 * panels)


@dataclass(frozen=True)
class NeuralEpsilonGreedy(ValueNetworkPolicy, TabularPolicy[ValueBelief]):
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


class ScoringPolicy(ValueNetworkPolicy, TabularPolicy[ValueBelief]):
    """A policy that decides by a value and a standard deviation of every joint action."""

    @abstractmethod
    def scores(self, state: ValueBelief, context: Floats) -> tuple[Floats, Floats]:
        """Return both, ``[R, n, M]``, or ``[R, 1, M]`` for all rows."""


class UpperBound(ScoringPolicy):
    """Take the action with the highest value + ``width`` · deviation; equal ones share."""

    width: NonNegative

    def probabilities(self, state: ValueBelief, context: Floats) -> Floats:
        value, deviation = self.scores(state, context)
        return highest(value + self.width * deviation)


class NormalSampling(ScoringPolicy):
    """Draw a normal value for each action, and take the action with the largest.

    Its deviation is ``scale`` times that of the scores. Probabilities are computed by quadrature.
    """

    scale: Positive

    def act(self, state: ValueBelief, context: Floats, rng: np.random.Generator) -> ChosenActions:
        value, deviation = self.scores(state, context)
        score = value + self.scale * deviation * rng.normal(size=value.shape)
        # Ties occur if all actions are certain, and between all of them before any feedback.
        return ChosenActions(state.problem.space.action(highest_at_random(score, rng)), None)

    def probabilities(self, state: ValueBelief, context: Floats) -> Floats:
        value, deviation = self.scores(state, context)
        return largest_normal(value, np.broadcast_to(self.scale * deviation, value.shape))


GRADIENTS_AT_ONCE = 2**22
"""About how many activations are held in memory, 16 MB of float32, while the sums over the buffer
are computed; more rows are processed in parts."""


@dataclass(frozen=True, kw_only=True)
class GradientFeaturePolicy(ScoringPolicy):
    """A policy by the logit f(a, c) of a value network and its variance g(a, c)ᵀ U⁻¹ g(a, c).

    g is the gradient of f with respect to all parameters. U, the ``extra`` of the belief, is the
    diagonal of ρ I + Σ_i w_i g_i g_iᵀ over the observations, with weights w_i and ρ the ``ridge``.
    The gradient with respect to a weight is an activation times a slope. Hence the sum and the
    quadratic form are products of matrices of squares, and no gradient is ever stored.

    Reference: Zhou et al. (2020); Zhang et al. (2021), with the diagonal they use in practice.

    *Departs from the papers:* f is the logit of a network trained by cross-entropy, not by squared
    error, and g is not divided by the root of the network's width. Each update computes U again
    with the gradients of the newly trained network, whereas the papers add new gradients to those
    of earlier networks.
    """

    ridge: Positive = 1.0

    def first_extra(self, belief: ValueBelief, rng: object) -> ValueNetwork:
        return ValueNetwork(*(np.full_like(array, self.ridge) for array in belief.network))

    def next_extra(
        self, before: ValueBelief, trained: ValueBelief, feedback: Feedback, rng: object
    ) -> ValueNetwork:
        """Return the diagonal of U, ρ + Σ_i w_i g_i², over all rows of the buffer."""
        buffer, total = trained.buffer, self.first_extra(trained, rng)
        step = max(1, GRADIENTS_AT_ONCE // (len(buffer.filled) * self.hidden))
        for rows in pieces(buffer.reward.shape[1], step):
            part = _squares(trained, rows)
            total = ValueNetwork(*(one + other for one, other in zip(total, part, strict=True)))
        return total

    def restricted_extra(self, state: ValueBelief, choices: Choices) -> ValueNetwork:
        precision: ValueNetwork = state.extra
        return precision.restricted(state.problem.space.kept_choices(choices))

    def scores(self, state: ValueBelief, context: Floats) -> tuple[Floats, Floats]:
        """Return f and √(gᵀ U⁻¹ g), layer by layer: Σ (squared input · U⁻¹) · squared slope."""
        state.problem.check_context(context)
        network, choices = state.network, state.choices()
        inverse = ValueNetwork(*(np.reciprocal(array) for array in state.extra))
        chosen = inverse.choice_weight[:, choices].sum(axis=2)

        def of(inputs: Numbers) -> Floats:
            hidden = network.hidden(inputs, choices)
            first, second = (slope**2 for slope in network.slopes(hidden))
            spread = inputs.astype(np.float32) ** 2 @ inverse.context_weight
            spread += inverse.first_bias[:, None]
            below = np.einsum("rnmh,rnh->rnm", first, spread)
            below += np.einsum("rnmh,rmh->rnm", first, chosen)
            flat = (hidden.first**2).reshape(len(first), -1, first.shape[-1])
            middle = (flat @ inverse.second_weight).reshape(first.shape)
            middle = (middle + inverse.second_bias[:, None, None]) * second
            above = np.einsum("rnmh,rh->rnm", hidden.second**2, inverse.head_weight)
            variance = below + middle.sum(axis=-1) + above + inverse.head_bias[:, None, None]
            return np.stack([network.logits(hidden), np.sqrt(variance)], axis=-1)

        both = by_rows(of, state.rows_at_once, state.inputs(context))
        return both[..., 0], both[..., 1]


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


@dataclass(frozen=True)
class NeuralUCB(GradientFeaturePolicy, UpperBound):
    """Take the action with the highest upper confidence bound, f(a, c) + γ √(gᵀ U⁻¹ g).

    f is the logit of a value network with two layers of ``hidden`` units, trained as ``training``
    says. g is the gradient of f with respect to the network's parameters, U the diagonal of
    ρ I + Σ g gᵀ over the observations. ρ is ``ridge``; γ is ``width``: the larger, the more is
    explored. Actions with equal bounds share the probability, as all do before the first feedback.

    Reference: Zhou et al. (2020). `GradientFeaturePolicy` says where it departs from the paper.
    """

    width: NonNegative = 0.1


@dataclass(frozen=True)
class NeuralThompson(GradientFeaturePolicy, NormalSampling):
    """Draw a value N(f(a, c), ν² gᵀ U⁻¹ g) for each action and take the action with the largest.

    f, g and U are those of `NeuralUCB`; ν is ``scale``: the larger, the more is explored.
    π(a | c), the probability that a's draw is the largest, is computed by quadrature.

    Reference: Zhang et al. (2021). `GradientFeaturePolicy` says where it departs from the paper.
    """

    scale: Positive = 0.1


@serializable("residuals")
class Residuals(NamedTuple):
    """S_a, the sum of squared residuals, and n_a, the number of observations, both ``[R, M]``."""

    squares: Floats
    counts: Floats


class ResidualPolicy(ScoringPolicy):
    """A policy by the value v(a, c) of a network and its standard error τ_a / √n_a.

    τ_a² = S_a / n_a is the mean squared residual of action a. S_a is 1 plus the sum of
    (r_i − v_i(a, c_i))² over the n_a observations of a. The prediction v_i is that of the network
    from before observation i was learned from. Rewards are scaled to the range from 0 to 1, and v
    is the sigmoid of the network's output.

    Reference: Zhu and Rigotti (2021), algorithm 1.

    *Departs from the paper:* the network reads the action as an input, whereas the paper has one
    network for each action. Rewards come in batches, whose residuals all refer to the network
    before the batch. An action without observations counts as observed once.
    """

    def first_extra(self, belief: ValueBelief, rng: np.random.Generator) -> Residuals:
        shape = (len(belief.buffer.filled), belief.problem.space.size)
        return Residuals(np.full(shape, FIRST_SQUARE), np.zeros(shape))

    def next_extra(
        self, before: ValueBelief, trained: ValueBelief, feedback: Feedback, rng: object
    ) -> Residuals:
        squares, counts = (one.copy() for one in before.extra)
        replica, row = np.nonzero(feedback.weight > 0)
        action = before.problem.space.index(feedback.action[replica, row])
        reward = reward_shares(before.problem.scale, trained.buffer, feedback.reward)
        residual = (reward - before.values_of(feedback))[replica, row]
        weight = feedback.weight[replica, row]
        np.add.at(squares, (replica, action), weight * residual**2)
        np.add.at(counts, (replica, action), weight)
        return Residuals(squares, counts)

    def restricted_extra(self, state: ValueBelief, choices: Choices) -> Residuals:
        kept = state.problem.space.indices_of(choices)
        return Residuals(*(one[:, kept] for one in state.extra))

    def scores(self, state: ValueBelief, context: Floats) -> tuple[Floats, Floats]:
        squares, counts = state.extra
        error = np.sqrt(squares / np.maximum(counts, 1.0) ** 2)
        return state.values(context), error[:, None]


@dataclass(frozen=True)
class SampleAverageSampling(ResidualPolicy, NormalSampling):
    """Draw a value N(v(a, c), ν² τ_a² / n_a) for each action and take the action with the largest.

    v is the value network, τ_a² the mean squared residual of action a and n_a the number of its
    observations. ν is ``scale``, which is 1 in the paper: the larger, the more is explored.
    π(a | c), the probability that the draw of a is the largest, is computed by quadrature.

    Reference: Zhu and Rigotti (2021). `ResidualPolicy` says where it departs from the paper.
    """

    scale: Positive = 1.0


@dataclass(frozen=True)
class SampleAverageUCB(ResidualPolicy, UpperBound):
    """Take the action with the highest upper confidence bound, v(a, c) + γ τ_a √(ln n / n_a).

    v, τ_a and n_a are those of `SampleAverageSampling`, n is the number of all observations. γ is
    ``width``, which is 1 in the paper: the larger, the more is explored. Actions with equal bounds
    share the probability.

    Reference: Zhu and Rigotti (2021). `ResidualPolicy` says where it departs from the paper.
    """

    width: NonNegative = 1.0

    def scores(self, state: ValueBelief, context: Floats) -> tuple[Floats, Floats]:
        value, error = super().scores(state, context)
        total = np.maximum(state.extra.counts.sum(axis=1), 1.0)[:, None, None]
        return value, np.sqrt(np.log(total)) * error


SQUARES = Continuous(low=0.0, high=1.0)
"""Squared residuals of rewards that are scaled to the range from 0 to 1 lie in this range, too."""


@dataclass(frozen=True)
class VarianceNetworkUCB(UpperBound):
    """Take the action with the highest upper confidence bound, v(a, c) + γ s(a, c).

    v is a value network with two layers of ``hidden`` units, trained as ``training`` says, with the
    probability ``dropout`` of leaving out a unit in training. s² is a second network of the same
    form, trained in the same way on the squared residuals (r_i − v(a_i, c_i))² of all observations,
    where rewards are scaled to the range from 0 to 1. γ is ``width``: the larger, the more is
    explored. Actions with equal bounds share the probability.

    Reference: Rawson and Freeman (2021).

    *Departs from the paper:* both networks read the action as an input, and are trained again on
    all observations at each update. Squared residuals are predicted by a sigmoid, trained by
    cross-entropy, so s² cannot be negative.
    """

    width: NonNegative = 0.1

    def first_extra(self, belief: ValueBelief, rng: np.random.Generator) -> ValueBelief:
        squares = Problem(belief.problem.space, belief.problem.context_width, SQUARES)
        return ValueBelief.empty(squares, len(belief.buffer.filled), self.hidden)

    def next_extra(
        self,
        before: ValueBelief,
        trained: ValueBelief,
        feedback: Feedback,
        rng: np.random.Generator,
    ) -> ValueBelief:
        buffer, old = trained.buffer, before.extra
        reward = reward_shares(trained.problem.scale, buffer, buffer.reward)
        learned = np.any(feedback.weight > 0, axis=1)
        squares = Feedback(
            buffer.context.astype(np.float64),
            buffer.action,
            np.clip((reward - trained.values_of(buffer)) ** 2, 0.0, 1.0),
            None,
            buffer.weight * learned[:, None],
        )
        fresh = self.first_extra(trained, rng)
        new = fresh.trained(squares, self.training, self.dropout, rng)
        return old._replace(
            parameters=where_chosen(learned, new.parameters, old.parameters),
            network=where_chosen(learned, new.network, old.network),
            scaling=where_chosen(learned, new.scaling, old.scaling),
        )

    def restricted_extra(self, state: ValueBelief, choices: Choices) -> ValueBelief:
        variance: ValueBelief = state.extra
        return variance.restricted(choices)

    def scores(self, state: ValueBelief, context: Floats) -> tuple[Floats, Floats]:
        return state.values(context), np.sqrt(state.extra.values(context))


def dropout_masks(
    shape: tuple[int, int, int], dropout: float, rng: np.random.Generator
) -> tuple[Weights, ...]:
    """Draw a mask for each layer: 0 for a unit that is left out, 1 / (1 − dropout) otherwise.

    ``shape`` is ``(replicas, masks, units)``.
    """
    kept = 1 - dropout
    drawn = rng.random((2, *shape)) < kept
    return tuple((drawn / kept).astype(np.float32))


def picked_masks(masks: tuple[Weights, ...], picked: Integers) -> tuple[Weights, ...]:
    """Return the masks ``[R, n, H]`` with these indices, ``[R, n]``."""
    return tuple(np.take_along_axis(one, picked[..., None], axis=1) for one in masks)


@dataclass(frozen=True)
class DropoutThompson(ValueNetworkPolicy, TabularPolicy[ValueBelief]):
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

    def first_extra(self, belief: ValueBelief, rng: np.random.Generator) -> tuple[Weights, ...]:
        shape = (len(belief.buffer.filled), self.masks, self.hidden)
        return dropout_masks(shape, self.dropout, rng)

    def act(self, state: ValueBelief, context: Floats, rng: np.random.Generator) -> ChosenActions:
        picked = rng.integers(self.masks, size=context.shape[:2])
        logits = state.logits(context, *picked_masks(state.extra, picked))
        return ChosenActions(state.problem.space.action(highest_at_random(logits, rng)), None)

    def probabilities(self, state: ValueBelief, context: Floats) -> Floats:
        total = np.zeros((*context.shape[:2], state.problem.space.size))
        for mask in range(self.masks):
            total += highest(state.logits(context, *(one[:, mask, None] for one in state.extra)))
        return total / self.masks
