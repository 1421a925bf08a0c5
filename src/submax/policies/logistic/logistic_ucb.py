"""Upper confidence bounds of logistic regressions."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import non_negative, positive
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.problem import Problem
from submax.policies.logistic.logistic_belief import LogisticBelief


@dataclass(frozen=True)
class LogisticUCB(ListingPolicy[LogisticBelief]):
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
