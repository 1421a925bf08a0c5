"""Exponential weights with implicit exploration."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import positive
from submax.policies.adversarial.exponential_weights import (
    ExponentialWeights,
    ExponentialWeightsState,
    softmax,
)


@dataclass(frozen=True)
class EXP3IX(ExponentialWeights):
    """Draw from π(a) ∝ exp(−η_t L̂_a), with losses ℓ̂ = ℓ / (π + γ_t) that are biased downwards.

    η_t = s √(2 ln K / (K t)) and γ_t = η_t / 2, with K arms, t the number of rows so far and s the
    ``learning_rate``. ℓ = 1 − r is the loss, r the reward scaled to 0 … 1. The bias γ keeps the
    estimates small, so that the regret is bounded with high probability without uniform
    exploration.

    Reference: Neu (2015), Explore no more: improved high-probability regret bounds for
    non-stochastic bandits, algorithm 1 with the anytime parameters of corollary 1.
    """

    learning_rate: float = 1.0

    def __post_init__(self) -> None:
        positive("learning_rate", self.learning_rate)

    def probabilities(self, state: ExponentialWeightsState, context: Floats) -> Floats:
        arms = state.estimate.shape[1]
        rate = self._rate(state.observed + 1, arms)
        return softmax(-rate[:, None] * state.estimate)[:, None]

    def estimate(self, gain: Floats, probability: Floats, number: Floats, arms: int) -> Floats:
        bias = self._rate(np.maximum(number, 1.0), arms) / 2
        return (1 - gain) / (probability + bias)

    def _rate(self, number: Floats, arms: int) -> Floats:
        rate: Floats = self.learning_rate * np.sqrt(2 * np.log(max(arms, 2)) / (arms * number))
        return rate
