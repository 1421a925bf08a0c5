"""Regressions that take in a few rows at a time, under a prior that stays."""

from typing import NamedTuple, Self

import numpy as np
from scipy.linalg import blas, lapack

from submax.core.arrays import Floats, Integers
from submax.core.running.stored import stored
from submax.regression.posterior import Posterior, along, times
from submax.regression.prior import OWN, Prior, PriorStructure


@stored("posterior-covariance")
class PosteriorCovariance(NamedTuple):
    """What maps responses to coefficients: the posterior covariance, in units of the prior.

    ``inverse [K, F, F]`` is (I + G_k / σ²)⁻¹ in the ``unit [F]`` of `Posterior`, whose prior it was
    computed under. New rows change it by the formula of Woodbury, at a cost of F² for each row
    instead of F³ for all.
    """

    prior: Prior
    unit: Floats
    inverse: Floats

    @classmethod
    def of(cls, posterior: Posterior) -> Self:
        """That of a posterior."""
        return cls(posterior.prior, posterior.unit, posterior.inverse)

    def with_rows(self, features: Floats, number: Integers, weight: Floats) -> Self:
        """After more rows: ``features [n, F]``, and the regression that each row belongs to."""
        inverse = self.inverse.copy()
        scaled = features * self.unit
        scaled *= np.sqrt(weight / self.prior.noise)[:, None]
        for one in np.unique(number):
            rows = scaled[number == one]
            seen = rows @ inverse[one]
            inner = seen @ rows.T
            inner.flat[:: len(inner) + 1] += 1.0
            root = np.linalg.cholesky(inner)
            halved, _ = lapack.dtrtrs(root, seen, lower=1)
            # In place: the matrix is symmetric, so that its transpose is the same.
            blas.dgemm(-1.0, halved, halved, 1.0, inverse[one].T, trans_a=True, overwrite_c=True)
        return self._replace(inverse=inverse)

    def applied(self, design: PriorStructure, response: Floats) -> Floats:
        """The covariance times responses, ``[P, K, F] -> [P, K, F]``; see `Posterior`."""
        alone = times(self.inverse, response)
        directions = design.directions
        if not directions.shape[1]:
            return alone
        change = (self._ratio(design) - 1.0).ravel()
        projected = directions.T @ alone
        flat = projected.reshape(len(response), len(change))
        coupled = (np.eye(len(change)) - along(design, self.inverse)) * change
        coupled.flat[:: len(coupled) + 1] += 1.0
        shared = change * np.linalg.solve(coupled, flat.T).T
        back = directions @ shared.reshape(projected.shape)
        return alone + times(self.inverse, back)

    def draw_responses(self, design: PriorStructure, normal: Floats, noise: Floats) -> Floats:
        """Responses whose solutions deviate from the posterior mean as draws do, ``[P, K, F]``.

        ``normal`` are standard normal numbers, and ``noise`` is Σ √w φ ε over the rows of each
        regression, with a standard normal ε for each row and draw. With the prior covariance B,
        the response B^(−1/2) normal − noise has the covariance B⁻¹ + G / σ², the precision of the
        posterior, so that the solution has the covariance of the posterior.
        """
        directions = design.directions
        stretch = self._ratio(design) ** -0.5 - 1.0
        projected = (directions.T @ normal) * stretch
        response: Floats = normal + directions @ projected
        response -= noise * (self.unit / np.sqrt(self.prior.noise))
        return response

    def _ratio(self, design: PriorStructure) -> Floats:
        """Prior variances along the directions, relative to a regression's own, ``[q, F]``."""
        ratio = self.prior.variance / self.prior.variance[:, OWN, None]
        return ratio[design.groups][:, design.kinds].T
