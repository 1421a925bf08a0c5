"""Upper confidence bounds of linear regressions that share a part of their coefficients."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import non_negative
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices

MOST_FEATURES = 2000
"""The most coefficients of all actions together; every update inverts a matrix of this size."""


@stored("hybrid-linucb-state")
class HybridState(NamedTuple):
    """``precision [R, P, P]`` = I + Σ φ φᵀ, ``moment [R, P]`` = Σ r φ, and their solution.

    ``covariance [R, P, P]`` is the inverse of the precision, ``mean [R, P]`` the coefficients.
    """

    problem: Problem
    precision: Floats
    moment: Floats
    covariance: Floats
    mean: Floats

    def restricted(self, choices: Choices) -> Self:
        """Return the state with the joint actions of these choices alone.

        The coefficients are those shared by all actions, then those of one action after another.
        """
        width, kept = 1 + self.problem.context_width, self.problem.space.indices_of(choices)
        shared = self.mean.shape[1] - width * self.problem.space.size
        own = shared + kept[:, None] * width + np.arange(width)
        index = np.concatenate([np.arange(shared), own.ravel()])
        return self._replace(
            problem=self.problem.restricted(choices),
            precision=self.precision[:, index][..., index],
            moment=self.moment[:, index],
            covariance=self.covariance[:, index][..., index],
            mean=self.mean[:, index],
        )


@dataclass(frozen=True)
class HybridLinUCB(ListingPolicy[HybridState]):
    """Take the action with the highest z_a·β̂ + x·θ̂_a + α s_a, equal ones with equal chance.

    The coefficients β are shared by all actions, θ_a belong to one action. x = (1, c) is the
    context with a constant. z_a are the products of the features of the action, with a constant,
    and x; without action features z_a = x. The regression is a ridge regression on φ_a = (z_a, 0 …
    x … 0), and s_a² = φ_aᵀ (I + Σ φ φᵀ)⁻¹ φ_a. α is ``alpha``.

    Reference: Li et al. (2010), algorithm 2 (hybrid linear models), which computes the same numbers
    by blocks; the test compares both.
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        non_negative("alpha", self.alpha)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> HybridState:
        problem.space.check_listable("hybrid LinUCB")
        own = (1 + problem.context_width) * problem.space.size
        size = own + shared_features(problem).shape[1] * (1 + problem.context_width)
        if size > MOST_FEATURES:
            raise InputError(
                f"hybrid LinUCB has at most {MOST_FEATURES} coefficients, and this problem needs "
                f"{size}: take linucb, which needs no common matrix"
            )
        eye = np.broadcast_to(np.eye(size), (replicas, size, size)).copy()
        nothing = np.zeros((replicas, size))
        return HybridState(problem, eye, nothing, eye.copy(), nothing.copy())

    def probabilities(self, state: HybridState, context: Floats) -> Floats:
        state.problem.check_context(context)
        if context.shape[2] == 0:
            # Without context all rows are equal.
            context = np.zeros((len(context), 1, 0))
        scores = [
            self._scores(state, context, np.full(context.shape[:2], action))
            for action in range(state.problem.space.size)
        ]
        score = np.stack(scores, axis=-1)
        best = score >= score.max(axis=-1, keepdims=True) - 1e-10
        listed: Floats = best / best.sum(axis=-1, keepdims=True)
        return listed

    def update(
        self, state: HybridState, feedback: Feedback, rng: np.random.Generator
    ) -> HybridState:
        feedback.check(state.problem)
        there = feedback.weight > 0
        if not there.any():
            return state
        context = np.where(there[..., None], feedback.context, 0.0)
        index = np.where(there, state.problem.space.index(feedback.action), 0)
        rows = design(state.problem, context, index) * there[..., None]
        reward = np.where(there, feedback.reward, 0.0) * feedback.weight
        weighted = rows * feedback.weight[..., None]
        precision = state.precision + weighted.swapaxes(1, 2) @ rows
        moment = state.moment + np.einsum("rn,rnp->rp", reward, rows)
        new = there.any(axis=1)
        covariance, mean = state.covariance.copy(), state.mean.copy()
        covariance[new] = np.linalg.inv(precision[new])
        mean[new] = np.einsum("rpq,rq->rp", covariance[new], moment[new])
        return HybridState(state.problem, precision, moment, covariance, mean)

    def _scores(self, state: HybridState, context: Floats, index: Integers) -> Floats:
        rows = design(state.problem, context, index)
        variance = np.einsum("rnp,rpq,rnq->rn", rows, state.covariance, rows, optimize=True)
        value = np.einsum("rnp,rp->rn", rows, state.mean)
        score: Floats = value + self.alpha * np.sqrt(np.maximum(variance, 0.0))
        return score


def shared_features(problem: Problem) -> Floats:
    """A constant and the action features of every joint action: ``[A, 1 + G]``."""
    listing = problem.space.listing()
    columns = [np.ones((len(listing), 1))]
    for slot, rows in enumerate(problem.action_features):
        if rows:
            columns.append(np.array(rows, dtype=np.float64)[listing[:, slot]])
    return np.concatenate(columns, axis=1)


def design(problem: Problem, context: Floats, index: Integers) -> Floats:
    """The rows φ of decisions: ``[R, n, D]`` and ``[R, n] -> [R, n, P]``."""
    x = np.concatenate([np.ones((*context.shape[:2], 1)), context], axis=-1)
    features = shared_features(problem)[index]
    width = x.shape[-1]
    z = (features[..., :, None] * x[..., None, :]).reshape(*index.shape, features.shape[-1] * width)
    size = problem.space.size
    chosen = index[..., None] == np.arange(size)
    own = (chosen[..., :, None] * x[..., None, :]).reshape(*index.shape, size * width)
    return np.concatenate([z, own], axis=-1)
