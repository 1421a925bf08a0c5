"""Exponential weights for exploration and exploitation."""

from dataclasses import dataclass

from submax.core.arrays import Floats
from submax.core.checks import positive, probability
from submax.policies.adversarial.exponential_weights import (
    ExponentialWeights,
    ExponentialWeightsState,
    softmax,
)


@dataclass(frozen=True)
class EXP3(ExponentialWeights):
    """Draw from π(a) = (1 − γ) w_a / Σ w + γ / K, with w_a = exp(γ Σ r̂_a / K) and r̂ = r / π.

    K is the number of arms, γ is ``exploration``, r the reward scaled to 0 … 1. Each reward is
    divided by the probability with which its action was chosen. No assumption is made about how
    rewards come about: against the best single arm the regret after T decisions is at most
    2.63 √(T K ln K), if γ = √(K ln K / ((e − 1) T)).

    Reference: Auer et al. (2002), The nonstochastic multiarmed bandit problem, figure 1.
    """

    exploration: float = 0.1

    def __post_init__(self) -> None:
        positive("exploration", self.exploration)
        probability("exploration", self.exploration)

    def probabilities(self, state: ExponentialWeightsState, context: Floats) -> Floats:
        arms = state.estimate.shape[1]
        weights = softmax(self.exploration / arms * state.estimate)
        listed: Floats = (1 - self.exploration) * weights + self.exploration / arms
        return listed[:, None]

    def estimate(self, gain: Floats, probability: Floats, number: Floats, arms: int) -> Floats:
        return gain / probability
