"""Linear policies: LinUCB and linear Thompson sampling."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import non_negative, positive, whole_number
from submax.core.errors import InputError
from submax.core.numerics import highest
from submax.core.policy import TabularPolicy
from submax.core.problem import Feedback, Problem
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.models.regression.bayesian import known
from submax.models.regression.context_belief import (
    BeliefSettings,
    ContextBelief,
    restricted_beliefs,
    taught,
)

MOST_NUMBERS = 2**28
"""The most numbers in the sums and draws of all replicas and joint actions: 2 GB of float64."""
SCALING_ROWS = 500
"""The number of first rows from which the means and deviations that standardize contexts come."""


@serializable("linear-beliefs")
class LinearBeliefs(NamedTuple):
    """A Bayesian linear regression of the reward for every joint action, in each replica.

    r = θ_a · (1, z) + noise, where z is the standardized context. Every action has coefficients
    θ_a of its own. All actions share the prior variance of the intercepts, the prior variance of
    the slopes and the variance of the noise, which are fitted by marginal likelihood.
    """

    problem: Problem
    beliefs: tuple[ContextBelief, ...]

    @classmethod
    def empty(cls, problem: Problem, replicas: int, draws: int) -> Self:
        """The beliefs before any feedback; refused if they would need too much memory."""
        problem.space.check_listable("a linear policy")
        features = 1 + problem.context_width
        numbers = replicas * problem.space.size * features * (features + draws)
        if numbers > MOST_NUMBERS:
            raise InputError(
                f"a linear policy stores (1 + context_width)² numbers and {draws} draws of "
                f"1 + context_width numbers for every replica and joint action, {numbers} numbers "
                f"in all, and at most {MOST_NUMBERS} are allowed: take fewer replicas"
            )
        return cls(problem, (ContextBelief.unlearned(problem.context_width),) * replicas)

    def restricted(self, choices: Choices) -> Self:
        """Return the beliefs about the joint actions of these choices alone."""
        return restricted_beliefs(self, choices)

    def settings(self, draws: int, width: float) -> BeliefSettings:
        """The settings of every belief, with ``draws`` posterior draws of relative ``width``."""
        return BeliefSettings(
            actions=self.problem.space.size,
            features=1 + self.problem.context_width,
            rows=SCALING_ROWS,
            draws=draws,
            width=width,
            discount=1.0,
            kernels=False,
            shared=False,
        )

    def learned(
        self, feedback: Feedback, draws: int, width: float, rng: np.random.Generator
    ) -> Self:
        """The beliefs after more feedback."""
        feedback.check(self.problem)
        settings = self.settings(draws, width)
        beliefs = taught(self.beliefs, feedback, self.problem, settings, rng)
        return self._replace(beliefs=beliefs)

    def distinct_contexts(self, context: Floats) -> Floats:
        """Return the contexts; only one for each replica if contexts have no variables."""
        self.problem.check_context(context)
        return context if context.shape[2] else context[:, :1]


PRODUCTS_AT_ONCE = 2**21
"""About how many products of features are held in memory, 16 MB; more contexts are processed in
parts."""
SCORE_TOLERANCE = 1e-10
"""Scores that differ by less than this share of the largest score are equal up to rounding."""


@serializable("linucb-state")
class LinUCBState(NamedTuple):
    """The beliefs, and a matrix root of the posterior covariance Σ_a of every action.

    ``roots`` has an entry ``[K, F, F]`` for each replica, see ``Posterior.roots``, or None before
    the first posterior. F = 1 + context_width is the number of features.
    """

    problem: Problem
    linear: LinearBeliefs
    roots: tuple[Floats | None, ...]

    def restricted(self, choices: Choices) -> Self:
        """Return the beliefs about the joint actions of these choices alone."""
        kept = self.problem.space.indices_of(choices)
        linear = self.linear.restricted(choices)
        roots = tuple(None if root is None else root[kept] for root in self.roots)
        return self._replace(problem=linear.problem, linear=linear, roots=roots)


@dataclass(frozen=True)
class LinUCB(TabularPolicy[LinUCBState]):
    """Take the action with the highest upper confidence bound, x·θ̂_a + α √(xᵀ Σ_a x).

    x = (1, z) with the standardized context z. Every joint action a has a Bayesian regression of
    its own on the rows in which it was taken; N(θ̂_a, Σ_a) is the posterior of its coefficients. α
    is ``alpha``, a multiple of the posterior's deviation: the larger, the more is explored. The
    variance of the noise and the prior variances of intercepts and slopes are fitted by marginal
    likelihood, so the units of rewards and contexts do not matter.

    Reference: Li et al. (2010), algorithm 1 (disjoint linear models).

    *Departs from the paper:* Σ_a = σ² (σ² Λ + Σ x xᵀ)⁻¹ with the noise variance σ² and the prior
    precisions Λ instead of (I + Σ x xᵀ)⁻¹, and the prior mean of every action is the mean reward of
    a uniform choice. Actions with equal scores share the probability, so decisions taken
    together before any feedback are spread over all actions. The intercept is part of x. The
    posterior is computed again when the number of rows has grown by 5 % or by 500. Until two
    rewards differ, the policy is uniform.
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        non_negative("alpha", self.alpha)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> LinUCBState:
        # A root ``[F, F]`` takes as much memory as F posterior draws ``[F]``, so the check of the
        # memory counts it as F draws; no draws are made.
        features = 1 + problem.context_width
        linear = LinearBeliefs.empty(problem, replicas, draws=features)
        return LinUCBState(problem, linear, (None,) * replicas)

    def probabilities(self, state: LinUCBState, context: Floats) -> Floats:
        context = state.linear.distinct_contexts(context)
        rows, size = context.shape[1], state.problem.space.size
        step = max(1, PRODUCTS_AT_ONCE // (size * (1 + context.shape[2])))
        found = np.full((len(context), rows, size), 1 / size)
        for replica, (belief, roots) in enumerate(
            zip(state.linear.beliefs, state.roots, strict=True)
        ):
            if roots is not None:
                for begin in range(0, rows, step):
                    part = slice(begin, begin + step)
                    score = self._scores(belief, roots, context[replica, part])
                    tolerance = SCORE_TOLERANCE * np.abs(score).max(axis=-1, keepdims=True)
                    found[replica, part] = highest(score, tolerance)
        return found

    def update(
        self, state: LinUCBState, feedback: Feedback, rng: np.random.Generator
    ) -> LinUCBState:
        linear = state.linear.learned(feedback, draws=0, width=1.0, rng=rng)
        settings = linear.settings(draws=0, width=1.0)
        roots = tuple(
            known if before.solved == after.solved else _roots(after, settings)
            for known, before, after in zip(
                state.roots, state.linear.beliefs, linear.beliefs, strict=True
            )
        )
        return state._replace(linear=linear, roots=roots)

    def _scores(self, belief: ContextBelief, roots: Floats, context: Floats) -> Floats:
        """The upper bounds relative to the belief's mean reward: ``[n, D] -> [n, K]``."""
        features = known(belief.feature_map).raw(context)
        size, feature_count, _ = roots.shape
        products = (features @ roots.reshape(-1, feature_count).T).reshape(-1, size, feature_count)
        deviation = np.sqrt(np.einsum("nkf,nkf->nk", products, products))
        scores: Floats = features @ known(belief.coefficients).T + self.alpha * deviation
        return scores


def _roots(belief: ContextBelief, settings: BeliefSettings) -> Floats | None:
    if belief.feature_map is None:
        return None
    return belief.feature_map.for_raw(belief.posterior(settings).roots())


SCORES_AT_ONCE = 2**21
"""About how many scores of draws and actions are held in memory, 16 MB; more contexts are processed
in parts."""


@dataclass(frozen=True)
class LinearThompson(TabularPolicy[LinearBeliefs]):
    """Draw each action's coefficients from their posterior and take the action with the best x·θ_a.

    θ_a ~ N(θ̂_a, width² Σ_a), where N(θ̂_a, Σ_a) is the posterior of the coefficients of a Bayesian
    regression of the reward on x = (1, z) over the rows of action a, and z is the standardized
    context. ``width`` is a multiple of the posterior's deviation: 1 is Thompson sampling, less
    explores less. The variance of the noise and the prior variances of intercepts and slopes are
    fitted by marginal likelihood, so the units of rewards and contexts do not matter.

    Each update draws ``draws`` sets of coefficients. A decision picks one of them at random, so
    that π(a | x) is exactly the share of draws in which x·θ_a is the largest.

    Reference: Agrawal and Goyal (2013).

    *Departs from the paper:* every joint action has coefficients of its own instead of features of
    its own. The noise and the prior are fitted instead of given, and the prior mean of every action
    is the mean reward of a uniform choice. All decisions between two updates share the draws. The
    posterior is computed again when the number of rows has grown by 5 % or by 500. Until two
    rewards differ, the policy is uniform.
    """

    width: float = 1.0
    draws: int = 64

    def __post_init__(self) -> None:
        positive("width", self.width)
        whole_number("draws", self.draws, at_least=1, at_most=4096)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> LinearBeliefs:
        return LinearBeliefs.empty(problem, replicas, self.draws)

    def probabilities(self, state: LinearBeliefs, context: Floats) -> Floats:
        context = state.distinct_contexts(context)
        rows, size = context.shape[1], state.problem.space.size
        step = max(1, SCORES_AT_ONCE // (self.draws * size))
        found = np.full((len(context), rows, size), 1 / size)
        for replica, belief in enumerate(state.beliefs):
            if belief.feature_map is not None:
                for begin in range(0, rows, step):
                    part = slice(begin, begin + step)
                    found[replica, part] = _shares(belief, context[replica, part])
        return found

    def update(
        self, state: LinearBeliefs, feedback: Feedback, rng: np.random.Generator
    ) -> LinearBeliefs:
        return state.learned(feedback, self.draws, self.width, rng)


def _shares(belief: ContextBelief, context: Floats) -> Floats:
    """The share of draws in which each action is the best: ``[n, D] -> [n, K]``."""
    drawn = belief.drawn_contrasts(context)
    rows, draws, size = drawn.shape
    cell = drawn.argmax(axis=-1) + size * np.arange(rows)[:, None]
    shares: Floats = np.bincount(cell.ravel(), minlength=rows * size) / draws
    return shares.reshape(rows, size)
