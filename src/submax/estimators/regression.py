"""Conditioned probabilities from Bayesian regressions on features of the context."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import Allowed, NonNegative, whole_number
from submax.core.conditioning import Estimator, TabularBelief
from submax.core.errors import InputError
from submax.core.numerics import tally
from submax.core.policy import PolicyTraits
from submax.core.problem import Feedback, Problem
from submax.core.rewards import RewardEncoding
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.models.memory import Memory
from submax.models.regression.bayesian import described_actions
from submax.models.regression.context_belief import (
    BeliefSettings,
    ContextBelief,
    restricted_beliefs,
    taught,
)

FLOOR = 1e-3
"""A level has at least this multiple of the uniform share, even if it was never observed."""
TILTS = np.linspace(-60.0, 60.0, 601)
"""Exponents among which the one with the wanted mean is found by interpolation."""


def level_probabilities(levels: Floats, share: Floats, value: Floats) -> Floats:
    """Return p(l | a) of actions with expected reward ``value``: ``[R, n, K] -> [R, n, L, K]``.

    ``levels [R, L]`` are the rewards and ``share [R, L]`` says how often each occurs; the value is
    scaled so that the lowest level is 0 and the highest 1. Of all distributions with this mean,
    p(l) ∝ share_l exp(t level_l) differs least from the share (in relative entropy). With two
    levels the probability of the higher one is the value.

    >>> levels, share = np.array([[0.0, 1.0]]), np.array([[0.9, 0.1]])
    >>> found = level_probabilities(levels, share, np.full((1, 1, 1), 0.3))
    >>> found.round(3).ravel().tolist()
    [0.7, 0.3]
    """
    count = levels.shape[1]
    if count == 2:
        return np.stack([1.0 - value, value], axis=2)
    result = np.empty((*value.shape[:2], count, value.shape[2]))
    for replica in range(len(levels)):
        span = max(levels[replica, -1] - levels[replica, 0], 1e-300)
        height = (levels[replica] - levels[replica, 0]) / span
        base = np.maximum(share[replica], FLOOR / count)
        tilted = base * np.exp(TILTS[:, None] * (height - height.max() * (TILTS[:, None] > 0)))
        tilted /= tilted.sum(axis=1, keepdims=True)
        mean = tilted @ height
        tilt = np.interp(value[replica], mean, TILTS)[:, None]
        power = np.log(base)[:, None] + tilt * height[:, None]
        power -= power.max(axis=1, keepdims=True)
        chances = np.exp(power)
        result[replica] = chances / chances.sum(axis=1, keepdims=True)
    return result


MOST_NUMBERS = 2_160_000
"""Numbers in the sums of all regressions: 17 MB. With more than 26 actions, each has fewer than 288
features. Learning takes several times this memory, and draws take more for very many actions."""
MOST_SHARED = 800
"""Coefficients that actions with features of their own share: the number of directions between the
actions times the number of features of the context. A fit inverts a matrix of this size; with 800,
learning about 30 actions with five features each took less time than without any."""
FEWEST_FEATURES = 4
"""With fewer features for each action there would be nothing to learn from the context."""
LEAST_WORTH = 1e-3
"""The belief about an action counts as at least this many observations."""


@serializable("feature-params")
class FeatureParams(NamedTuple):
    """The belief of each replica, the reward ``levels [R, L]``, and the weight of rows at each.

    If the levels move with the rewards, the ``counts [R, L]`` are those of the sample of rows that
    each belief keeps, else those of all rows.
    """

    problem: Problem
    beliefs: tuple[ContextBelief, ...]
    levels: Floats
    counts: Floats

    def restricted(self, choices: Choices) -> Self:
        """Return the beliefs about the joint actions of these choices alone."""
        return restricted_beliefs(self, choices)


@dataclass(frozen=True)
class BayesianFeatures(Estimator[FeatureParams]):
    """A Bayesian linear regression for every action, on features fitted to the context.

    r = φ(x)·θ_a + noise. The features φ are a constant, the context and kernels around some of
    its rows (see `FeatureMap`). How far kernels reach is chosen by marginal likelihood from the
    first ``rows`` rows; context variables to which the regressions are sensitive count more, if
    that raises the marginal likelihood. The prior variances of θ and of the noise are fitted by
    marginal likelihood as long as rows come. What
    actions have in common is part of the prior: their coefficients may be positively correlated
    (contexts in which everything earns more) or negatively (only one action is right). If the
    problem has ``action_features``, coefficients are also expected to be similar for actions with
    similar features, as far as the rows bear this out; an action without any row starts from what
    is known of the others. Rows are remembered as sums, so cost and memory do not depend on
    how many there were.

    There are at most ``features`` of them, fewer if there are many actions. ``draws`` posterior
    draws are kept after each update, with the share ``width`` of the posterior's deviation. Of the
    ``memory`` only its discount can be used. Without ``kernels`` the regressions are linear.

    π(a | x, r) ∝ s_a(x) p(r | x, a): s_a is the number of observations that the belief about a in
    x is worth, v (1 − v) / variance − 1 with the expected reward v scaled to 0 … 1, as estimated
    from the draws; p(r | x, a) is the distribution over the levels that has the expected reward as
    its mean and otherwise differs least from that of all rewards.

    Not in the paper; see docs/research.
    """

    features: Annotated[int, Allowed(whole_number, at_least=FEWEST_FEATURES, at_most=4096)] = 288
    rows: Annotated[int, Allowed(whole_number, at_least=10, at_most=100_000)] = 2000
    draws: Annotated[int, Allowed(whole_number, at_least=1, at_most=4096)] = 8
    width: NonNegative = 0.1
    kernels: bool = True
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.memory.check_keeps_rows("bayesian-features estimator")

    @property
    def traits(self) -> PolicyTraits:
        return PolicyTraits(forgets=self.memory.forgets)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> FeatureParams:
        problem.space.check_listable(
            "the bayesian-features estimator", "take the policy posterior-slots"
        )
        self.settings(problem)
        belief = ContextBelief.unlearned(problem.context_width)
        nothing = np.zeros((replicas, 0))
        levels = problem.scale.reward_encoding(nothing, nothing).levels
        return FeatureParams(problem, (belief,) * replicas, levels, np.zeros(levels.shape))

    def settings(self, problem: Problem) -> BeliefSettings:
        """Return the settings of the regressions for a problem."""
        actions = problem.space.size
        features = min(self.features, math.isqrt(MOST_NUMBERS // actions))
        if features < FEWEST_FEATURES:
            raise InputError(
                f"the bayesian-features estimator has a regression for every action, for at most "
                f"{MOST_NUMBERS // FEWEST_FEATURES**2} actions, and this problem has {actions}: "
                "declare slots and take the policy posterior-slots"
            )
        described = described_actions(problem)
        if described is not None:
            features = min(features, MOST_SHARED // (1 + described.shape[1]))
        discount = self.memory.discount
        return BeliefSettings(
            actions, features, self.rows, self.draws, self.width, discount, self.kernels, described
        )

    def fit(
        self, params: FeatureParams, feedback: Feedback, rng: np.random.Generator
    ) -> FeatureParams:
        problem = params.problem
        feedback.check(problem)
        settings = self.settings(problem)
        beliefs = taught(params.beliefs, feedback, problem, settings, rng)
        learned = params._replace(beliefs=beliefs)
        if problem.scale.moves:
            return _sample_counted(learned)
        return learned._replace(counts=self._counted(params, feedback))

    def belief(self, params: FeatureParams, context: Floats) -> "FeatureBelief":
        return FeatureBelief(params, context, self.draws, self.width)

    def _counted(self, params: FeatureParams, feedback: Feedback) -> Floats:
        """Return the total weight of rows at each level, for scales with fixed levels."""
        size = params.counts.shape[1]
        encoding = RewardEncoding(params.levels, params.levels)
        if self.memory.discount == 1 and feedback.weight.all():
            level = encoding.nearest(feedback.reward)
            return params.counts + tally(level, feedback.weight, size)
        there = feedback.weight > 0
        present = np.count_nonzero(there, axis=1)[:, None]
        later = np.maximum(present - np.cumsum(there, axis=1), 0)
        weight = np.where(there, feedback.weight, 0.0) * self.memory.discount**later
        level = encoding.nearest(np.where(there, feedback.reward, params.levels[:, :1]))
        old = params.counts * self.memory.discount**present
        return old + tally(level, weight, size)


class FeatureBelief(TabularBelief):
    """What the regressions of ``params`` predict in these contexts, when it is first needed.

    ``draws`` and ``width`` are those of the estimator.
    """

    def __init__(self, params: FeatureParams, context: Floats, draws: int, width: float) -> None:
        replicas, rows = context.shape[:2]
        share = _share(params)
        prior = np.broadcast_to(share[:, None], (replicas, rows, share.shape[1]))
        super().__init__(params.problem.space, params.levels, prior, self._normalized)
        self._params = params
        self._context = context
        self._draws = draws
        self._width = width

    def expected_rewards(self) -> Floats:
        """Return the expected reward of every action, ``[R, n, K]``; NaN before the first fit."""
        result = np.full((*self._context.shape[:2], self.space.size), np.nan)
        for replica, belief in enumerate(self._params.beliefs):
            if belief.feature_map is not None:
                result[replica] = belief.mean(belief.feature_map.raw(self._context[replica]))
        return result

    def drawn_rewards(self) -> Floats:
        """Return the expected rewards in each kept posterior draw, ``[R, n, P, K]``; NaN at first.

        The draws have the share ``width`` of the posterior's standard deviation.
        """
        result = np.full((*self._context.shape[:2], self._draws, self.space.size), np.nan)
        for replica, belief in enumerate(self._params.beliefs):
            if belief.feature_map is not None:
                result[replica] = belief.drawn(self._context[replica])
        return result

    def _normalized(self) -> Floats:
        return self._masses / self._masses.sum(axis=-1, keepdims=True)

    def values(self) -> Floats:
        """Return V_l over the sample of rows that is kept."""
        params = self._params
        result = np.zeros((len(params.beliefs), params.problem.scale.levels))
        for replica, belief in enumerate(params.beliefs):
            rows = belief.sample.rows
            total = rows.weight.sum()
            if total == 0:
                continue
            one = slice(replica, replica + 1)
            alone = params._replace(
                beliefs=(belief,), levels=params.levels[one], counts=params.counts[one]
            )
            there = FeatureBelief(alone, rows.context[None], self._draws, self._width)
            chosen = there.prob_of_all()[0][np.arange(len(rows.number)), :, rows.number]
            paid = rows.reward != 0
            ratio = rows.weight[paid] * rows.reward[paid] * np.exp(-rows.log_prob[paid])
            result[replica] = ratio @ chosen[paid] / total
        return result

    def observation_weights(self) -> Floats:
        """Return the observations that the belief is worth, summed over the actions."""
        if self._width == 0:
            raise InputError(
                "draws of width 0 do not say how sure the belief is: give the estimator a width "
                "above 0, such as 0.1"
            )
        return self._masses.sum(axis=-1)

    @cached_property
    def _masses(self) -> Floats:
        """s_a(x) p(l | x, a), ``[R, n, L, K]``; see `BayesianFeatures`."""
        params, width = self._params, self._width
        levels = params.levels[:, None]
        mean, drawn = self.expected_rewards(), self.drawn_rewards()
        unknown = np.isnan(mean)
        lowest, span = levels[..., :1], np.maximum(levels[..., -1:] - levels[..., :1], 1e-300)
        value = np.clip(np.where(unknown, 0.5, (mean - lowest) / span), 1e-6, 1 - 1e-6)
        unit = np.maximum(width * span, 1e-300)
        spread = np.mean(((drawn - mean[:, :, None]) / unit[:, :, None]) ** 2, axis=2)
        worth = value * (1 - value) / np.maximum(spread, 1e-12) - 1.0
        # Draws of width 0 have no spread, so all actions count as equally uncertain.
        unknown = unknown | (width == 0)
        worth = np.where(unknown, 1.0, np.maximum(worth, LEAST_WORTH))
        chances = level_probabilities(params.levels, _share(params), value)
        return worth[:, :, None] * chances


def _share(params: FeatureParams) -> Floats:
    """Return how often each level occurs, ``[R, L]``; equal shares before the first row."""
    total = params.counts.sum(axis=1, keepdims=True)
    share = params.counts / np.where(total > 0, total, 1.0)
    return np.where(total > 0, share, 1.0 / params.counts.shape[1])


def _sample_counted(params: FeatureParams) -> FeatureParams:
    """Return the parameters with levels and counts computed from the samples of rows."""
    samples = [belief.sample.rows for belief in params.beliefs]
    most = max(len(rows.reward) for rows in samples)
    reward, weight = np.zeros((len(samples), most)), np.zeros((len(samples), most))
    for replica, rows in enumerate(samples):
        reward[replica, : len(rows.reward)] = rows.reward
        weight[replica, : len(rows.reward)] = rows.weight
    encoding = params.problem.scale.reward_encoding(reward, weight)
    counts = tally(encoding.nearest(reward), weight, params.counts.shape[1])
    return params._replace(levels=encoding.levels, counts=counts)
