"""Linear policies: LinUCB and linear Thompson sampling."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import Allowed, NonNegative, Positive, whole_number
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
from submax.policies.arm_statistics import in_parts

MOST_NUMBERS = 2**28
"""The most numbers in the sums and draws of all replicas and joint actions: 2 GB of float64."""
SCALING_ROWS = 500
"""The number of first rows from which the means and deviations that standardize contexts come."""
NUMBERS_AT_ONCE = 2**21
"""About how many numbers are held in memory, 16 MB; more contexts are processed in parts."""
SCORE_TOLERANCE = 1e-10
"""Scores that differ by less than this share of the largest score are equal up to rounding."""


@serializable("linear-beliefs")
class LinearBeliefs(NamedTuple):
    """A Bayesian linear regression of the reward for every joint action, in each replica.

    r = θ_a · (1, z) + noise, where z is the standardized context. Every action has coefficients
    θ_a of its own. All actions share the prior variance of the intercepts, the prior variance of
    the slopes and the variance of the noise, which are fitted by marginal likelihood. ``roots`` has
    a matrix root ``[K, F, F]`` of the posterior covariances for each replica, see
    ``Posterior.roots``; None before the first posterior, or if the policy does not need it.
    """

    problem: Problem
    beliefs: tuple[ContextBelief, ...]
    roots: tuple[Floats | None, ...]

    def restricted(self, choices: Choices) -> Self:
        """Return the beliefs about the joint actions of these choices alone."""
        kept = self.problem.space.indices_of(choices)
        roots = tuple(None if root is None else root[kept] for root in self.roots)
        return restricted_beliefs(self, choices)._replace(roots=roots)


class LinearPolicy(TabularPolicy[LinearBeliefs]):
    """Decide by the posteriors of `LinearBeliefs`; uniform until two rewards differ."""

    needs_roots: ClassVar[bool] = False
    """Whether the policy decides by the roots of the posterior covariances."""

    @abstractmethod
    def settings(self, problem: Problem) -> BeliefSettings:
        """Return the settings of every belief."""

    @abstractmethod
    def decide(self, belief: ContextBelief, root: Floats | None, context: Floats) -> Floats:
        """Return the probability of every action: ``[n, D] -> [n, K]``."""

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> LinearBeliefs:
        problem.space.check_listable("a linear policy")
        features = 1 + problem.context_width
        # A root ``[F, F]`` takes as much memory as F posterior draws ``[F]``.
        draws = features if self.needs_roots else self.settings(problem).draws
        numbers = replicas * problem.space.size * features * (features + draws)
        if numbers > MOST_NUMBERS:
            raise InputError(
                f"a linear policy stores (1 + context_width)² numbers and {draws} draws of "
                f"1 + context_width numbers for every replica and joint action, {numbers} numbers "
                f"in all, and at most {MOST_NUMBERS} are allowed: take fewer replicas"
            )
        belief = ContextBelief.unlearned(problem.context_width)
        return LinearBeliefs(problem, (belief,) * replicas, (None,) * replicas)

    def probabilities(self, state: LinearBeliefs, context: Floats) -> Floats:
        state.problem.check_context(context)
        # Without numbers all contexts are alike.
        context = context if context.shape[2] else context[:, :1]
        size, settings = state.problem.space.size, self.settings(state.problem)
        numbers = size * (settings.features if self.needs_roots else settings.draws)
        deciders = [
            None if belief.feature_map is None else partial(self.decide, belief, root)
            for belief, root in zip(state.beliefs, state.roots, strict=True)
        ]
        return in_parts(deciders, context, size, NUMBERS_AT_ONCE // numbers)

    def update(
        self, state: LinearBeliefs, feedback: Feedback, rng: np.random.Generator
    ) -> LinearBeliefs:
        feedback.check(state.problem)
        settings = self.settings(state.problem)
        beliefs = taught(state.beliefs, feedback, state.problem, settings, rng)
        roots = state.roots
        if self.needs_roots:
            roots = tuple(
                root if old.solved == new.solved else _root(new, settings)
                for root, old, new in zip(roots, state.beliefs, beliefs, strict=True)
            )
        return state._replace(beliefs=beliefs, roots=roots)


def _settings(problem: Problem, draws: int, width: float) -> BeliefSettings:
    return BeliefSettings(
        actions=problem.space.size,
        features=1 + problem.context_width,
        rows=SCALING_ROWS,
        draws=draws,
        width=width,
        discount=1.0,
        kernels=False,
        shared=False,
    )


def _root(belief: ContextBelief, settings: BeliefSettings) -> Floats | None:
    if belief.feature_map is None:
        return None
    return belief.feature_map.for_raw(belief.posterior(settings).roots())


@dataclass(frozen=True)
class LinUCB(LinearPolicy):
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

    needs_roots: ClassVar[bool] = True
    alpha: NonNegative = 1.0

    def settings(self, problem: Problem) -> BeliefSettings:
        return _settings(problem, draws=0, width=1.0)

    def decide(self, belief: ContextBelief, root: Floats | None, context: Floats) -> Floats:
        """Share the probability among the highest bounds, relative to the mean reward."""
        features, root = known(belief.feature_map).raw(context), known(root)
        size, width, _ = root.shape
        products = (features @ root.reshape(-1, width).T).reshape(-1, size, width)
        deviation = np.sqrt(np.einsum("nkf,nkf->nk", products, products))
        score = features @ known(belief.coefficients).T + self.alpha * deviation
        return highest(score, SCORE_TOLERANCE * np.abs(score).max(axis=-1, keepdims=True))


@dataclass(frozen=True)
class LinearThompson(LinearPolicy):
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

    width: Positive = 1.0
    draws: Annotated[int, Allowed(whole_number, at_least=1, at_most=4096)] = 64

    def settings(self, problem: Problem) -> BeliefSettings:
        return _settings(problem, self.draws, self.width)

    def decide(self, belief: ContextBelief, root: Floats | None, context: Floats) -> Floats:
        """Return the share of draws in which each action is the best."""
        drawn = belief.drawn_contrasts(context)
        rows, draws, size = drawn.shape
        cell = drawn.argmax(axis=-1) + size * np.arange(rows)[:, None]
        shares: Floats = np.bincount(cell.ravel(), minlength=rows * size) / draws
        return shares.reshape(rows, size)
