"""The posterior of the coefficients of several regressions."""

from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import lapack

from submax.core.arrays import Floats
from submax.regression.prior import OWN, Prior, PriorStructure
from submax.regression.sums import Sums

SMALL = 48
"""Matrices up to this width are factorized all at once, since calls would cost more than work."""


class Posterior(NamedTuple):
    """N(mean, covariance) of the coefficients θ ``[K, F]``, given ``Sums`` and a ``Prior``.

    Everything is in units in which the prior variance of a regression's own coefficients is 1:
    θ = ``unit`` · (what is written here). If regressions shared nothing, the covariance would be
    that of each alone, ``inverse [K, F, F]`` = (I + G_k / σ²)⁻¹. With the directions U between
    regressions, whose prior variances are 1 + c instead of 1, it is

        A⁻¹ + A⁻¹ U Q⁻¹ Uᵀ A⁻¹,  Q⁻¹ = C (I + H C)⁻¹,  H = Uᵀ (I − A⁻¹) U

    by the formula of Woodbury, A⁻¹ being all the ``inverse`` and ``coupling [q F, q F]`` being Q⁻¹:
    it costs K + q³ inversions of F × F matrices, and c may be negative, down to −1, which is what
    regressions need whose rewards exclude each other. ``log_evidence`` is the marginal likelihood.
    """

    design: PriorStructure
    prior: Prior
    centre: float
    unit: Floats
    gram: Floats
    inverse: Floats
    coupling: Floats
    mean: Floats
    explained: float
    square: float
    weight: float
    log_evidence: float

    @classmethod
    def of(
        cls,
        sums: Sums,
        design: PriorStructure,
        prior: Prior,
        centre: float,
        inverse: Floats | None = None,
    ) -> Self:
        """Solve for the coefficients of rewards counted from ``centre``.

        If the ``inverse`` is known already, it is not computed, and the evidence is NaN.
        """
        unit = np.sqrt(prior.variance[design.groups, OWN])
        moment, square = sums.centred(centre)
        gram = sums.gram * (unit[:, None] * unit / prior.noise)
        response = moment * (unit / prior.noise)
        log_det = np.nan
        if inverse is None:
            inverse, log_det = _inverted(gram)
        ratio = prior.variance[design.groups] / prior.variance[design.groups, OWN, None]
        # Direction by direction, each with all features.
        change = (ratio[:, design.kinds].T - 1.0).ravel()
        coupled = np.eye(len(change)) + (np.eye(len(change)) - along(design, inverse)) * change
        coupling = change[:, None] * np.linalg.inv(coupled)
        coupling = (coupling + coupling.T) / 2
        mean = _applied(design, inverse, coupling, response)
        explained = float(np.sum(response * mean))
        log_det += float(np.linalg.slogdet(coupled)[1])
        spread = sums.weight * np.log(2 * np.pi * prior.noise) + square / prior.noise
        evidence = -(spread + log_det - explained) / 2
        return cls(
            design, prior, centre, unit, gram, inverse, coupling, mean,
            explained, square, sums.weight, evidence,
        )  # fmt: skip

    @property
    def coefficients(self) -> Floats:
        """The posterior mean of θ, ``[K, F]``."""
        return self.mean * self.unit

    def draws(self, count: int, rng: np.random.Generator) -> Floats:
        """Deviations from the mean, ``[count, K, F]``: θ ~ coefficients + deviation.

        By Matheron's rule: a draw from the prior, corrected by what the data would have said
        about it; the draws are exact, and correlated between regressions as the posterior is.
        Regressions that share nothing are drawn by ``roots``.
        """
        regressions, features = self.mean.shape
        shape = (count, regressions, features)
        if not len(self.coupling):
            normal = rng.standard_normal((regressions, count, features))
            return (normal @ self.roots()).swapaxes(0, 1)
        prior = self._prior_draws(rng.standard_normal(shape))
        noise = np.empty(shape)
        for number in range(regressions):
            root = _root(self.gram[number])
            noise[:, number] = rng.standard_normal((count, features)) @ root.T
        heard = times(self.gram, prior) + noise
        deviation = prior - _applied(self.design, self.inverse, self.coupling, heard)
        return deviation * self.unit

    def roots(self) -> Floats:
        """R_k with R_kᵀ R_k = the covariance of θ_k, if regressions share nothing: ``[K, F, F]``.

        The posterior variance of φ·θ_k is |R_k φ|².
        """
        assert not len(self.coupling), "regressions that share something depend on each other"
        precision = self.gram + np.eye(self.gram.shape[-1])
        roots: Floats = np.linalg.inv(np.linalg.cholesky(precision)) * self.unit
        return roots

    def variance(self, features: Floats) -> Floats:
        """The posterior variance of φ·θ_k: ``[n, F] -> [n, K]``."""
        scaled = features * self.unit
        found = np.empty((len(features), len(self.inverse)))
        for number, inverse in enumerate(self.inverse):
            alone = scaled @ inverse
            found[:, number] = np.einsum("nf,nf->n", alone, scaled)
            if len(self.coupling):
                weights = self.design.directions[number]
                seen = (weights[:, None] * alone[:, None]).reshape(len(alone), -1)
                found[:, number] += np.einsum("ni,ni->n", seen @ self.coupling, seen)
        return found

    def _prior_draws(self, normal: Floats) -> Floats:
        directions = self.design.directions
        ratio = self.prior.variance / self.prior.variance[:, OWN, None]
        stretch = np.sqrt(ratio[self.design.groups][:, self.design.kinds].T) - 1.0
        projected: Floats = (directions.T @ normal) * stretch
        return normal + directions @ projected


def _inverted(gram: Floats) -> tuple[Floats, float]:
    """(I + G_k)⁻¹ of each matrix, and the sum of the log-determinants of I + G_k."""
    if gram.shape[-1] <= SMALL:
        root = np.linalg.cholesky(gram + np.eye(gram.shape[-1]))
        inverse_root = np.linalg.inv(root)
        log_det = 2.0 * float(np.log(np.einsum("kff->kf", root)).sum())
        return inverse_root.swapaxes(1, 2) @ inverse_root, log_det
    inverse, log_det = np.empty_like(gram), 0.0
    for number, matrix in enumerate(gram):
        precision = matrix.copy(order="F")
        precision.flat[:: len(precision) + 1] += 1.0
        factor, _ = _checked(lapack.dpotrf(precision, lower=1, overwrite_a=1, clean=0))
        log_det += 2.0 * float(np.log(np.diag(factor)).sum())
        lower, _ = _checked(lapack.dpotri(factor, lower=1, overwrite_c=1))
        lower = np.tril(lower)
        inverse[number] = lower + np.tril(lower, -1).T
    return inverse, log_det


def _checked(result: Any) -> Any:
    """What LAPACK gave, if it says that the matrix was positive definite."""
    if result[-1] != 0:
        raise np.linalg.LinAlgError("a precision matrix is not positive definite")
    return result


def _root(gram: Floats) -> Floats:
    """R with R Rᵀ = the matrix, which may be singular: by Cholesky's method with pivots."""
    factor, pivot, rank, _ = lapack.dpstrf(gram, lower=1)
    factor[:, rank:] = 0.0
    root = np.empty_like(gram)
    root[pivot - 1] = np.tril(factor)
    return root


def along(design: PriorStructure, matrices: Floats) -> Floats:
    """Uᵀ blockdiag(matrices) U: ``[K, F, F] -> [q F, q F]``."""
    directions = design.directions
    count, features = directions.shape[1], matrices.shape[-1]
    if count == 1:
        return np.tensordot(directions[:, 0] ** 2, matrices, axes=1)
    blocks = np.empty((count, features, count, features))
    for one in range(count):
        for other in range(one + 1):
            weights = directions[:, one] * directions[:, other]
            block = np.tensordot(weights, matrices, axes=1)
            blocks[one, :, other], blocks[other, :, one] = block, block
    return blocks.reshape(count * features, count * features)


def times(matrices: Floats, vectors: Floats) -> Floats:
    """Each symmetric matrix times its vectors: ``[K, F, F]`` and ``[..., K, F] -> [..., K, F]``."""
    if vectors.ndim == 2:
        return (matrices @ vectors[..., None])[..., 0]
    product = vectors.swapaxes(0, 1) @ matrices
    return product.swapaxes(0, 1)


def _applied(design: PriorStructure, inverse: Floats, coupling: Floats, response: Floats) -> Floats:
    """The covariance times responses: ``[K, F] -> [K, F]``, or ``[P, K, F] -> [P, K, F]``."""
    alone = times(inverse, response)
    if not len(coupling):
        return alone
    directions = design.directions
    projected = directions.T @ alone
    flat = projected.reshape(*projected.shape[:-2], len(coupling)) @ coupling
    back = directions @ flat.reshape(projected.shape)
    return alone + times(inverse, back)
