"""Multinomial logistic regression, in which each row allows only some of the classes."""

from typing import NamedTuple, Self

import numpy as np
import scipy.optimize
import scipy.special

from submax.core.arrays import Booleans, Floats, Integers

PENALTY = 1.0
"""Ridge penalty of the coefficients of standardized features: a standard normal prior."""
CONSTANT_PENALTY = 1e-6
"""Ridge penalty of the constants: nearly 0, so they fit the frequencies of the classes."""
MOST_STEPS = 200
"""Iterations of L-BFGS; a logistic regression converges in fewer."""


class SoftmaxRegression(NamedTuple):
    """p(k | x) = softmax(θ · x)[k] over the possible classes k; the first feature is 1.

    θ ``[D, classes]`` maximizes the likelihood of the chosen classes, with a ridge penalty.
    """

    theta: Floats

    @classmethod
    def fitted(cls, features: Floats, chosen: Integers, possible: Booleans, weight: Floats) -> Self:
        """Fit θ to rows of ``features [n, D]`` with a ``chosen [n]`` class and a ``weight [n]``.

        ``possible [n, classes]`` says which classes could be chosen.
        """
        shape, rows = (features.shape[1], possible.shape[1]), np.arange(len(chosen))
        total = float(weight.sum())
        taken = np.zeros(possible.shape)
        taken[rows, chosen] = 1.0
        penalty = np.full(shape, PENALTY)
        penalty[0] = CONSTANT_PENALTY

        def loss(flat: Floats) -> tuple[float, Floats]:
            theta = flat.reshape(shape)
            probabilities = cls(theta).probabilities(features, possible)
            value = -weight @ np.log(probabilities[rows, chosen]) + 0.5 * (penalty * theta**2).sum()
            excess = weight[:, None] * (probabilities - taken)
            gradient = features.T @ excess + penalty * theta
            return float(value) / total, gradient.ravel() / total

        best = scipy.optimize.minimize(
            loss,
            np.zeros(shape[0] * shape[1]),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": MOST_STEPS},
        )
        return cls(best.x.reshape(shape))

    def probabilities(self, features: Floats, possible: Booleans) -> Floats:
        """Return the probability of each class, ``[n, classes]``; 0 where it is not possible."""
        scores = np.where(possible, features @ self.theta, -np.inf)
        found: Floats = scipy.special.softmax(scores, axis=1)
        return found
