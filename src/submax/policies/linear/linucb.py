"""Upper confidence bounds of linear regressions."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import non_negative
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.problem import Problem
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.models.regression.context_belief import ContextBelief
from submax.models.regression.map_choice import BeliefSettings
from submax.policies.linear.linear_beliefs import LinearBeliefs
from submax.policies.listed import drawn_one

PRODUCTS_AT_ONCE = 2**21
"""About how many products of features are held in memory, 16 MB; more contexts are processed in
parts."""
SCORE_TOLERANCE = 1e-10
"""Scores that differ by less than this share of the largest score are equal up to rounding."""


@stored("linucb-state")
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
class LinUCB(ListingPolicy[LinUCBState]):
    """Take the action with the highest upper confidence bound, x·θ̂_a + α √(xᵀ Σ_a x).

    x = (1, z) with the standardized context z. Every joint action a has a Bayesian regression of
    its own on the rows in which it was taken; N(θ̂_a, Σ_a) is the posterior of its coefficients. α
    is ``alpha``, a multiple of the posterior's deviation: the larger, the more is explored. The
    variance of the noise and the prior variances of intercepts and slopes are fitted by marginal
    likelihood, so that the units of rewards and contexts do not matter.

    Reference: Li et al. (2010), algorithm 1 (disjoint linear models).

    *Departs from the paper:* Σ_a = σ² (σ² Λ + Σ x xᵀ)⁻¹ with the noise variance σ² and the prior
    precisions Λ instead of (I + Σ x xᵀ)⁻¹, and the prior mean of every action is the mean reward of
    a uniform choice. Actions with equal scores share the probability, so that decisions taken
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

    def act(self, state: LinUCBState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        if context.shape[:2] == (1, 1):
            return drawn_one(state.problem.space, self.probabilities(state, context)[0, 0], rng)
        return super().act(state, context, rng)

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
                    found[replica, part] = _nearly_highest(score)
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
        assert belief.feature_map is not None, "nothing was learned"
        assert belief.coefficients is not None, "nothing was learned"
        features = belief.feature_map.raw(context)
        size, feature_count, _ = roots.shape
        products = (features @ roots.reshape(-1, feature_count).T).reshape(-1, size, feature_count)
        deviation = np.sqrt(np.einsum("nkf,nkf->nk", products, products))
        scores: Floats = features @ belief.coefficients.T + self.alpha * deviation
        return scores


def _roots(belief: ContextBelief, settings: BeliefSettings) -> Floats | None:
    if belief.feature_map is None:
        return None
    return belief.feature_map.for_raw(belief.posterior(settings).roots())


def _nearly_highest(score: Floats) -> Floats:
    """Equal probabilities for the scores that are the highest up to rounding, on the last axis."""
    tolerance = SCORE_TOLERANCE * np.abs(score).max(axis=-1, keepdims=True)
    best = score >= score.max(axis=-1, keepdims=True) - tolerance
    shared: Floats = best / best.sum(axis=-1, keepdims=True)
    return shared
