"""Bayesian regression on random Fourier features, for all replicas at once."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import positive, whole_number
from submax.core.running.stored import stored


@stored("fourier-statistics")
class FourierStatistics(NamedTuple):
    """Weighted sums over observations with features φ ``[F]`` and reward r.

    ``precision [R, F, F]`` is Σ φ φᵀ, ``response [R, F]`` is Σ r φ, ``features [R, F]`` is Σ φ;
    ``observed``, ``reward`` and ``square``, all ``[R]``, are the sums of 1, r and r². r is relative
    to ``origin [R]``, the mean of the first rewards, which avoids cancellation in the variance.
    """

    precision: Floats
    response: Floats
    features: Floats
    observed: Floats
    reward: Floats
    square: Floats
    origin: Floats

    @classmethod
    def empty(cls, replicas: int, features: int) -> Self:
        """The sums before any observation."""
        flat, none = np.zeros((replicas, features)), np.zeros(replicas)
        return cls(np.zeros((replicas, features, features)), flat, flat, none, none, none, none)

    def add(self, features: Floats, reward: Floats, weight: Floats) -> Self:
        """Add observations: ``features [R, n, F]``, ``reward [R, n]`` and ``weight [R, n]``."""
        weighted = features * weight[..., None]
        total = weight.sum(axis=1)
        mean = (weight * reward).sum(axis=1) / np.where(total > 0, total, 1.0)
        origin = np.where(self.observed > 0, self.origin, mean)
        reward = reward - origin[:, None]
        return type(self)(
            self.precision + weighted.swapaxes(1, 2) @ features,
            self.response + (weighted * reward[..., None]).sum(axis=1),
            self.features + weighted.sum(axis=1),
            self.observed + total,
            self.reward + (weight * reward).sum(axis=1),
            self.square + (weight * reward**2).sum(axis=1),
            origin,
        )

    def draws(self, count: int, scale: float, ridge: float, rng: np.random.Generator) -> Floats:
        """Draw coefficients from the posterior, for standardized rewards: ``[R, count, F]``.

        N(θ̂, scale² A⁻¹) with A = ridge I + Σ φ φᵀ and θ̂ = A⁻¹ Σ φ (r − r̄) / s, where r̄ and s are
        the mean and the standard deviation of the rewards so far.
        """
        total = np.maximum(self.observed, 1.0)
        mean = self.reward / total
        variance = np.maximum(self.square / total - mean**2, 0.0)
        deviation = np.where(variance > 0, np.sqrt(variance), 1.0)
        response = (self.response - mean[:, None] * self.features) / deviation[:, None]
        size = self.response.shape[1]
        root = np.linalg.cholesky(self.precision + ridge * np.eye(size))
        # A = L Lᵀ, so that Lᵀ⁻¹ (L⁻¹ b + scale ξ) has mean A⁻¹ b and covariance scale² A⁻¹.
        noise = scale * rng.standard_normal((len(root), size, count))
        half = np.linalg.solve(root, response[..., None]) + noise
        found: Floats = np.linalg.solve(root.swapaxes(1, 2), half).swapaxes(1, 2)
        return found


def check_regression(features: object, draws: object, scale: object, ridge: object) -> None:
    """Refuse parameters of the regression that are not allowed."""
    whole_number("features", features, at_least=1)
    whole_number("draws", draws, at_least=1)
    positive("scale", scale)
    positive("ridge", ridge)
