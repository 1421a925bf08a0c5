"""Logistic policies: upper confidence bounds and Thompson sampling."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import scipy

from submax.core.arrays import Floats, Integers
from submax.core.checks import non_negative, positive
from submax.core.errors import InputError
from submax.core.numerics import log_prob_of
from submax.core.policy import Policy, TabularPolicy
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.serialization import stored
from submax.core.spaces import Choices
from submax.policies.neural import largest_normal

STEPS = 50
"""Largest number of steps to the mode; Newton's method needs about five."""
CLOSE = 1e-9
"""The search ends when no coefficient moves by more than this."""
MOST_NUMBERS = 2**27
"""The most numbers in the precision matrices of all replicas and joint actions: 1 GB."""


@stored("logistic-belief")
class LogisticBelief(NamedTuple):
    """Coefficients θ_a ~ N(``mean [R, A, F]``, ``precision [R, A, F, F]``⁻¹) of every action.

    P(1 | a, c) = σ(θ_a · x) with x = (1, c). A reward between the lowest and the highest possible
    one counts as part of a success.
    """

    problem: Problem
    mean: Floats
    precision: Floats

    @classmethod
    def prior(cls, problem: Problem, replicas: int, precision: float) -> Self:
        """The belief before any feedback: independent coefficients with mean 0."""
        problem.scale.known_bounds("a logistic policy")
        problem.space.check_listable("a logistic policy")
        actions, features = problem.space.size, 1 + problem.context_width
        if replicas * actions * features**2 > MOST_NUMBERS:
            raise InputError(
                "a logistic policy stores (1 + context_width)² numbers for every replica and joint "
                f"action, here {replicas * actions * features**2}, and at most {MOST_NUMBERS} are "
                "allowed: take fewer replicas"
            )
        shape = (replicas, actions, features)
        eye = np.broadcast_to(precision * np.eye(features), (*shape, features))
        return cls(problem, np.zeros(shape), eye.copy())

    def restricted(self, choices: Choices) -> Self:
        """Return the belief about the joint actions of these choices alone."""
        kept = self.problem.space.indices_of(choices)
        return self._replace(
            problem=self.problem.restricted(choices),
            mean=self.mean[:, kept],
            precision=self.precision[:, kept],
        )

    def learned(self, feedback: Feedback) -> Self:
        """The belief after more feedback: the mode of the posterior and its curvature."""
        feedback.check(self.problem)
        there = feedback.weight > 0
        low, high = self.problem.scale.known_bounds("a logistic policy")
        success = np.where(there, (feedback.reward - low) / (high - low), 0.0)
        rows = features_of(np.where(there[..., None], feedback.context, 0.0))
        index = np.where(there, self.problem.space.index(feedback.action), -1)
        own = index[:, None, :] == np.arange(self.mean.shape[1])[:, None]
        weight = own * feedback.weight[:, None, :]
        mode = self._mode(rows, success[:, None, :], weight)
        probability = scipy.special.expit(np.einsum("raf,rnf->ran", mode, rows))
        return self._replace(
            mean=mode,
            precision=self.precision + _curvature(weight * probability * (1 - probability), rows),
        )

    def scores(self, context: Floats) -> tuple[Floats, Floats]:
        """The mean and the standard deviation of θ_a · x: ``[R, n, D] -> [R, n, A]`` each.

        Without context all rows are equal, and only one is returned, ``[R, 1, A]``.
        """
        self.problem.check_context(context)
        rows = features_of(context if context.shape[2] else np.zeros((len(context), 1, 0)))
        mean = np.einsum("raf,rnf->rna", self.mean, rows)
        covariance = np.linalg.inv(self.precision)
        variance = np.einsum("rnf,rafg,rng->rna", rows, covariance, rows, optimize=True)
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def _mode(self, rows: Floats, success: Floats, weight: Floats) -> Floats:
        """The mode of the posterior, ``[R, A, F]``.

        A step of Newton's method that does not lower the negative log-posterior is replaced by a
        step with the upper bound 1/4 of the variance, which always lowers it.
        """
        point, done = self.mean, np.zeros(self.mean.shape[:2], dtype=bool)
        # An action without new rows stays exactly as it is.
        done |= ~(weight > 0).any(axis=-1)
        bound = self.precision + _curvature(weight / 4, rows)
        height = self._height(point, rows, success, weight)
        for _ in range(STEPS):
            if done.all():
                break
            probability = scipy.special.expit(np.einsum("raf,rnf->ran", point, rows))
            slope = np.einsum("rafg,rag->raf", self.precision, point - self.mean)
            slope += np.einsum("ran,rnf->raf", weight * (probability - success), rows)
            bend = self.precision + _curvature(weight * probability * (1 - probability), rows)
            newton = point - np.linalg.solve(bend, slope[..., None])[..., 0]
            careful = point - np.linalg.solve(bound, slope[..., None])[..., 0]
            lower = self._height(newton, rows, success, weight) <= height
            moved = np.where(lower[..., None], newton, careful)
            moved = np.where(done[..., None], point, moved)
            # A final action no longer moves, so that it does not depend on other actions.
            done |= np.abs(moved - point).max(axis=-1) < CLOSE
            point, height = moved, self._height(moved, rows, success, weight)
        return point

    def _height(self, point: Floats, rows: Floats, success: Floats, weight: Floats) -> Floats:
        """The negative log-posterior up to a constant, ``[R, A]``."""
        away = point - self.mean
        prior = np.einsum("raf,rafg,rag->ra", away, self.precision, away, optimize=True) / 2
        product = np.einsum("raf,rnf->ran", point, rows)
        loss = np.logaddexp(0.0, product) - success * product
        height: Floats = prior + np.einsum("ran,ran->ra", weight, loss)
        return height


def features_of(context: Floats) -> Floats:
    """X = (1, c): ``[R, n, D] -> [R, n, 1 + D]``."""
    return np.concatenate([np.ones((*context.shape[:2], 1)), context], axis=-1)


def _curvature(weight: Floats, rows: Floats) -> Floats:
    """Σ_i w_i x_i x_iᵀ: ``[R, A, n]`` and ``[R, n, F] -> [R, A, F, F]``."""
    curvature: Floats = np.einsum("ran,rnf,rng->rafg", weight, rows, rows, optimize=True)
    return curvature


@dataclass(frozen=True)
class LogisticUCB(TabularPolicy[LogisticBelief]):
    """Take the action with the highest θ̂_a · x + α √(xᵀ Σ_a x), equal ones with equal chance.

    Every joint action has a logistic regression P(1 | a, c) = σ(θ_a · x), x = (1, c), with the
    posterior N(θ̂_a, Σ_a). α is ``alpha``; the prior is N(0, I / λ), λ is ``precision``. Since σ
    rises, the order of the bounds is that of the probabilities.

    Reference: Filippi et al. (2010), Parametric bandits: the generalized linear case; in the form
    of Li, Lu and Zhou (2017), Provably optimal algorithms for generalized linear contextual
    bandits.

    *Departs from the papers:* Σ_a is that of a Laplace approximation instead of (Σ x xᵀ)⁻¹, and
    each update starts from the last approximation instead of all rows.
    """

    alpha: float = 1.0
    precision: float = 1.0

    def __post_init__(self) -> None:
        non_negative("alpha", self.alpha)
        positive("precision", self.precision)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> LogisticBelief:
        return LogisticBelief.prior(problem, replicas, self.precision)

    def probabilities(self, state: LogisticBelief, context: Floats) -> Floats:
        mean, deviation = state.scores(context)
        score = mean + self.alpha * deviation
        best = score >= score.max(axis=-1, keepdims=True) - 1e-10
        listed: Floats = best / best.sum(axis=-1, keepdims=True)
        return listed

    def update(
        self, state: LogisticBelief, feedback: Feedback, rng: np.random.Generator
    ) -> LogisticBelief:
        return state.learned(feedback)


@dataclass(frozen=True)
class LogisticThompson(Policy[LogisticBelief]):
    """Draw the coefficients of every action and take the action with the highest σ(θ_a · x).

    Every joint action has a logistic regression P(1 | a, c) = σ(θ_a · x), x = (1, c), with the
    posterior N(θ̂_a, Σ_a). For one decision, θ_a · x ~ N(θ̂_a · x, s² xᵀ Σ_a x), so that products are
    drawn instead of coefficients; s is ``width``. The prior is N(0, I / λ), λ is ``precision``.
    π(a) is the probability that the product of a is the largest of independent normal ones.

    Reference: Chapelle and Li (2011), algorithm 3.

    *Departs from the paper:* Σ_a is a full matrix, there only its diagonal is kept, and every
    action has its own coefficients. Decisions of one batch have independent draws.
    """

    width: float = 1.0
    precision: float = 1.0

    def __post_init__(self) -> None:
        positive("width", self.width)
        positive("precision", self.precision)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> LogisticBelief:
        return LogisticBelief.prior(problem, replicas, self.precision)

    def act(
        self, state: LogisticBelief, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        mean, deviation = state.scores(context)
        shape = (*context.shape[:2], mean.shape[-1])
        drawn = mean + self.width * deviation * rng.standard_normal(shape)
        return ChosenActions(state.problem.space.action(drawn.argmax(axis=-1)), None)

    def log_prob(self, state: LogisticBelief, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        return log_prob_of(self.probabilities(state, context), state.problem.space.index(action))

    def probabilities(self, state: LogisticBelief, context: Floats) -> Floats:
        mean, deviation = state.scores(context)
        return largest_normal(mean, self.width * deviation)

    def update(
        self, state: LogisticBelief, feedback: Feedback, rng: np.random.Generator
    ) -> LogisticBelief:
        return state.learned(feedback)
