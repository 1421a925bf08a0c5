"""The posterior of the coefficients of several regressions."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
import scipy

from submax.core.arrays import Floats, Integers
from submax.models.regression.prior import OWN, Prior, PriorStructure
from submax.models.regression.sums import Sums

FEW_ROWS = 0.4
"""A regression with fewer rows than this share of its features is inverted by Woodbury's formula.
With more rows a Cholesky factorization is faster."""
BATCHED_WIDTH = 48
"""Up to this width, numpy factorizes the matrices of all regressions in one call, since the calls
would take longer than the work; wider matrices go to LAPACK one by one."""


class FeatureRows(NamedTuple):
    """The ``features [n, F]`` and ``weight [n]`` of rows, and the ``number [n]`` of the regression
    that each belongs to."""

    features: Floats
    number: Integers
    weight: Floats


class Inverse(NamedTuple):
    """``matrices [K, F, F]`` = (I + G_k)⁻¹, and how those with few rows were computed.

    For such a regression, ``halves[k] [n_k, F]`` is H with (I + G_k)⁻¹ = I − Hᵀ H; it is None for
    the others. ``log_det`` is the sum of the log-determinants of I + G_k.
    """

    matrices: Floats
    halves: tuple[Floats | None, ...]
    log_det: float


class Posterior(NamedTuple):
    """The posterior N(mean, covariance) of the coefficients θ ``[K, F]`` of K regressions.

    All arrays are in units in which the prior variance of the kind ``OWN`` is 1: coefficients are
    ``unit [F]`` times the values here. If the regressions were independent, the covariance of
    regression k would be ``inverse [K, F, F]`` = (I + G_k / σ²)⁻¹, with G_k the Gram matrix in
    these units. The directions U between regressions have the prior variances 1 + c instead of 1.
    With A⁻¹ = blockdiag(inverse) and C = diag(c), Woodbury's formula gives the covariance

        A⁻¹ + A⁻¹ U Q⁻¹ Uᵀ A⁻¹,  Q⁻¹ = C (I + H C)⁻¹,  H = Uᵀ (I − A⁻¹) U

    where ``coupling [q F, q F]`` is Q⁻¹. This costs K + q³ inversions of F × F matrices. c may be
    negative, down to −1, as for regressions whose rewards exclude each other. ``log_evidence`` is
    the logarithm of the marginal likelihood, and ``halves`` are those of `Inverse`.
    """

    structure: PriorStructure
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
    halves: tuple[Floats | None, ...]

    @classmethod
    def of(
        cls,
        sums: Sums,
        structure: PriorStructure,
        prior: Prior,
        centre: float,
        inverse: Floats | None = None,
        rows: FeatureRows | None = None,
    ) -> Self:
        """Return the posterior of the coefficients of rewards minus ``centre``.

        If the ``inverse`` is passed, it is not computed, and the evidence is NaN. If the ``rows``
        of the sums are passed, regressions with few rows are inverted faster.
        """
        unit = np.sqrt(prior.variance[structure.groups, OWN])
        moment, square = sums.centred(centre)
        gram = sums.gram * (unit[:, None] * unit / prior.noise)
        response = moment * (unit / prior.noise)
        if inverse is None:
            inverse, halves, log_det = _inverted(gram, _scaled(rows, unit, prior.noise))
        else:
            halves, log_det = (None,) * len(gram), np.nan
        coupling, log_det_of_system = _coupling(structure, prior, inverse)
        mean = covariance_times(structure, inverse, response, lambda rows: rows @ coupling)
        explained = float(np.sum(response * mean))
        log_det += log_det_of_system
        spread = sums.weight * np.log(2 * np.pi * prior.noise) + square / prior.noise
        log_evidence = -(spread + log_det - explained) / 2
        return cls(
            structure, prior, centre, unit, gram, inverse, coupling, mean,
            explained, square, sums.weight, log_evidence, halves,
        )  # fmt: skip

    @property
    def coefficients(self) -> Floats:
        """The posterior mean of θ, ``[K, F]``."""
        return self.mean * self.unit

    def draws(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw deviations from the posterior mean, ``[count, K, F]``: θ ~ coefficients + deviation.

        The draws are exact, also in their correlations between regressions. Independent
        regressions are drawn by their ``roots``, others by Matheron's rule; see ``deviations``.
        """
        regressions, features = self.mean.shape
        shape = (count, regressions, features)
        if not len(self.coupling):
            normal = rng.standard_normal((regressions, count, features))
            return (normal @ self.roots()).swapaxes(0, 1)
        ratio = self.prior.relative_variances(self.structure)
        prior = self.structure.scaled(rng.standard_normal(shape), np.sqrt(ratio))
        noise = np.empty(shape)
        for number in range(regressions):
            root = _root(self.gram[number])
            noise[:, number] = rng.standard_normal((count, features)) @ root.T
        return self.deviations(prior, noise)

    def deviations(self, prior_draws: Floats, noise: Floats) -> Floats:
        """Return posterior draws minus the posterior mean, by Matheron's rule: ``[P, K, F]``.

        ``prior_draws`` are draws of the coefficients from the prior, and ``noise`` is the sum over
        the rows of φ ε / σ, in the units of this posterior. Each prior draw is corrected by the
        posterior mean of the response that it would have produced.

        Reference: Wilson et al. (2021), Pathwise conditioning of Gaussian processes.
        """
        response = times(self.gram, prior_draws) + noise
        explained = covariance_times(
            self.structure, self.inverse, response, lambda rows: rows @ self.coupling
        )
        return (prior_draws - explained) * self.unit

    def roots(self) -> Floats:
        """Return R_k with R_kᵀ R_k = the covariance of θ_k: ``[K, F, F]``.

        The regressions must be independent. The posterior variance of φ·θ_k is then |R_k φ|².
        """
        assert not len(self.coupling), "the regressions must be independent"
        precision = self.gram + np.eye(self.gram.shape[-1])
        roots: Floats = np.linalg.inv(np.linalg.cholesky(precision)) * self.unit
        return roots

    def variance(self, features: Floats) -> Floats:
        """Return the posterior variance of φ·θ_k: ``[n, F] -> [n, K]``."""
        scaled = features * self.unit
        found = np.empty((len(features), len(self.inverse)))
        for number, inverse in enumerate(self.inverse):
            alone = scaled @ inverse
            found[:, number] = np.einsum("nf,nf->n", alone, scaled)
            if len(self.coupling):
                weights = self.structure.directions[number]
                seen = (weights[:, None] * alone[:, None]).reshape(len(alone), -1)
                found[:, number] += np.einsum("ni,ni->n", seen @ self.coupling, seen)
        return found


def _coupling(structure: PriorStructure, prior: Prior, inverse: Floats) -> tuple[Floats, float]:
    """Return Q⁻¹, see `Posterior`, and ln det(I + H C).

    Independent regressions have an empty Q⁻¹.
    """
    if not len(structure.kinds):
        return np.zeros((0, 0)), 0.0
    change = variance_change(structure, prior)
    system = coupled_system(structure, inverse, change)
    # The transpose has the same determinant, and LAPACK need not copy it.
    factor, pivots, _ = _checked(scipy.linalg.lapack.dgetrf(system.T, overwrite_a=1))
    log_det = float(np.log(np.abs(np.diag(factor))).sum())
    inverted, _ = _checked(scipy.linalg.lapack.dgetri(factor, pivots, overwrite_lu=1))
    coupling = change[:, None] * inverted.T
    return (coupling + coupling.T) / 2, log_det


def _scaled(rows: FeatureRows | None, unit: Floats, noise: float) -> FeatureRows | None:
    """Return rows of weight 1 in the units of a posterior, divided by the noise."""
    if rows is None:
        return None
    features = rows.features * unit
    features *= np.sqrt(rows.weight / noise)[:, None]
    return FeatureRows(features, rows.number, np.ones(len(features)))


def _inverted(gram: Floats, rows: FeatureRows | None) -> Inverse:
    """Return the inverse of I + G_k for each matrix; ``rows`` are those that the matrices sum."""
    regressions, width = gram.shape[:2]
    if rows is None and width <= BATCHED_WIDTH:
        root = np.linalg.cholesky(gram + np.eye(width))
        inverse_root = np.linalg.inv(root)
        log_det = 2.0 * float(np.log(np.einsum("kff->kf", root)).sum())
        matrices = inverse_root.swapaxes(1, 2) @ inverse_root
        return Inverse(matrices, (None,) * regressions, log_det)
    inverse, halves, log_det = np.empty_like(gram), [], 0.0
    for number, matrix in enumerate(gram):
        mine = None if rows is None else rows.features[rows.number == number]
        if mine is None or len(mine) > FEW_ROWS * width:
            half, logarithm = None, _invert(matrix, inverse[number])
        else:
            half, logarithm = _invert_few(mine, inverse[number])
        halves.append(half)
        log_det += logarithm
    return Inverse(inverse, tuple(halves), log_det)


def _invert(matrix: Floats, out: Floats) -> float:
    """Write (I + matrix)⁻¹ to ``out``, and return ln det(I + matrix)."""
    precision = matrix.copy(order="F")
    precision.flat[:: len(precision) + 1] += 1.0
    factor, _ = _checked(scipy.linalg.lapack.dpotrf(precision, lower=1, overwrite_a=1))
    log_det = 2.0 * float(np.log(np.diag(factor)).sum())
    # The other triangle is zero.
    lower, _ = _checked(scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1))
    np.add(lower, lower.T, out=out)
    out.flat[:: len(out) + 1] *= 0.5
    return log_det


def _invert_few(rows: Floats, out: Floats) -> tuple[Floats, float]:
    """Write (I + Rᵀ R)⁻¹ = I − Hᵀ H to ``out``, and return H and ln det(I + Rᵀ R).

    With the Cholesky factor L of I + R Rᵀ, H = L⁻¹ R, and the determinant is that of I + R Rᵀ.
    """
    if not len(rows):
        out[:] = np.eye(len(out))
        return rows, 0.0
    inner = rows @ rows.T
    inner.flat[:: len(inner) + 1] += 1.0
    root = np.linalg.cholesky(inner)
    half, _ = _checked(scipy.linalg.lapack.dtrtrs(root, rows, lower=1))
    np.matmul(half.T, -half, out=out)
    out.flat[:: len(out) + 1] += 1.0
    return half, 2.0 * float(np.log(np.diag(root)).sum())


def _checked(result: Any) -> Any:
    """Return the result of a LAPACK routine, or raise if the matrix was not positive definite."""
    if result[-1] != 0:
        raise np.linalg.LinAlgError("a precision matrix is not positive definite")
    return result


def _root(gram: Floats) -> Floats:
    """Return R with R Rᵀ = the matrix, by pivoted Cholesky; the matrix may be singular."""
    factor, pivot, rank, _ = scipy.linalg.lapack.dpstrf(gram, lower=1)
    factor[:, rank:] = 0.0
    root = np.empty_like(gram)
    root[pivot - 1] = np.tril(factor)
    return root


def times(matrices: Floats, vectors: Floats) -> Floats:
    """Multiply symmetric matrices by vectors: ``[K, F, F]`` and ``[..., K, F] -> [..., K, F]``."""
    if vectors.ndim == 2:
        return (matrices @ vectors[..., None])[..., 0]
    product = vectors.swapaxes(0, 1) @ matrices
    return product.swapaxes(0, 1)


def variance_change(structure: PriorStructure, prior: Prior) -> Floats:
    """Return c, the relative prior variances along the directions minus 1: ``[q F]``."""
    return (prior.relative_variances(structure) - 1.0).ravel()


def coupled_system(structure: PriorStructure, inverse: Floats, change: Floats) -> Floats:
    """Return I + H C with H = Uᵀ (I − A⁻¹) U and C = diag(change): ``[q F, q F]``."""
    system: Floats = (np.eye(len(change)) - structure.projected(inverse)) * change
    system.flat[:: len(system) + 1] += 1.0
    return system


def covariance_times(
    structure: PriorStructure,
    inverse: Floats,
    response: Floats,
    couple: Callable[[Floats], Floats],
) -> Floats:
    """Multiply responses by the posterior covariance: ``[K, F]`` or ``[P, K, F]``, same shape back.

    ``couple`` multiplies rows ``[..., q F]`` by Q⁻¹; see `Posterior`. It is not called if the
    regressions are independent.
    """
    alone = times(inverse, response)
    directions = structure.directions
    if not directions.shape[1]:
        return alone
    projected = directions.T @ alone
    size = directions.shape[1] * alone.shape[-1]
    coupled = couple(projected.reshape(*projected.shape[:-2], size))
    back = directions @ coupled.reshape(projected.shape)
    return alone + times(inverse, back)
