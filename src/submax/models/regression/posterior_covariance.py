"""A posterior covariance that new rows update without a new factorization."""

from typing import NamedTuple, Self

import numpy as np
import scipy

from submax.core.arrays import Floats, Integers
from submax.core.running.stored import stored
from submax.models.regression.posterior import (
    Inverse,
    Posterior,
    coupled_system,
    covariance_times,
    variance_change,
)
from submax.models.regression.prior import Prior, PriorStructure


@stored("posterior-covariance")
class PosteriorCovariance(NamedTuple):
    """The posterior covariance under a fixed prior; it maps responses to coefficients.

    ``inverse [K, F, F]`` is (I + G_k / σ²)⁻¹ in the ``unit [F]`` of `Posterior`. New rows change
    it by Woodbury's formula, at a cost of F² for each row instead of F³ for a new inversion.
    """

    prior: Prior
    unit: Floats
    inverse: Floats

    @classmethod
    def of(cls, posterior: Posterior) -> Self:
        """Return the covariance of a posterior."""
        return cls(posterior.prior, posterior.unit, posterior.inverse.dense())

    def with_rows(self, features: Floats, number: Integers, weight: Floats) -> Self:
        """Return the covariance after more rows.

        ``features [n, F]`` and ``weight [n]`` are those of the rows, and ``number [n]`` is the
        regression that each row belongs to.
        """
        inverse = self.inverse.copy()
        scaled = features * self.unit
        scaled *= np.sqrt(weight / self.prior.noise)[:, None]
        for one in np.unique(number):
            rows = scaled[number == one]
            seen = rows @ inverse[one]
            inner = seen @ rows.T
            inner.flat[:: len(inner) + 1] += 1.0
            root = np.linalg.cholesky(inner)
            halved, _ = scipy.linalg.lapack.dtrtrs(root, seen, lower=1)
            # BLAS updates its own column-major matrix in place: the transpose, which is the same
            # symmetric matrix.
            scipy.linalg.blas.dgemm(
                -1.0, halved, halved, 1.0, inverse[one].T, trans_a=True, overwrite_c=True
            )
        return self._replace(inverse=inverse)

    def applied(self, structure: PriorStructure, response: Floats) -> Floats:
        """Multiply responses by the covariance: ``[P, K, F] -> [P, K, F]``."""
        inverse = Inverse.of(self.inverse)

        def couple(rows: Floats) -> Floats:
            change = variance_change(structure, self.prior)
            system = coupled_system(structure, inverse, change)
            coupled: Floats = change * np.linalg.solve(system, rows.T).T
            return coupled

        return covariance_times(structure, inverse, response, couple)

    def draw_responses(self, structure: PriorStructure, normal: Floats, noise: Floats) -> Floats:
        """Return random responses such that ``applied`` gives posterior draws minus the mean.

        All arrays are ``[P, K, F]``: ``normal`` are standard normal numbers, and ``noise`` is
        Σ √w φ ε over the rows of each regression, with a standard normal ε for each row and draw.
        With the prior covariance B, the response B^(−1/2) normal − noise has the covariance
        B⁻¹ + G / σ². This is the precision of the posterior, so the solution has the covariance of
        the posterior.
        """
        ratio = self.prior.relative_variances(structure)
        response = structure.scaled(normal, ratio**-0.5)
        response -= noise * (self.unit / np.sqrt(self.prior.noise))
        return response
