"""The posterior of the coefficients of several regressions."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
import scipy

from submax.core.arrays import Floats, Integers
from submax.models.regression.prior import OWN, Prior, PriorStructure
from submax.models.regression.sums import Sums

FEW_ROWS = 0.6
"""A regression with fewer rows than this share of its features is inverted by Woodbury's formula.
With more rows a Cholesky factorization is faster."""
BATCHED_WIDTH = 48
"""Up to this width, numpy factorizes the matrices of all regressions in one call, since the calls
would take longer than the work; wider matrices go to LAPACK one by one."""


class FeatureRows(NamedTuple):
    """Rows with ``features [n, F]``, the ``number [n]`` of their regression, and ``weight [n]``."""

    features: Floats
    number: Integers
    weight: Floats


class Inverse(NamedTuple):
    """(I + G_k)⁻¹ for each of K regressions: ``matrices`` of some, and ``halves`` of the others.

    ``matrices [m, F, F]`` are those of the regressions ``numbers [m]``. A regression with few rows
    has its half instead: H ``[n_k, F]`` with (I + G_k)⁻¹ = I − Hᵀ H, which takes less time to
    compute and to multiply. ``few`` are the numbers of these regressions. ``log_det`` is the sum
    of the log-determinants of I + G_k.
    """

    numbers: Integers
    matrices: Floats
    few: Integers
    halves: tuple[Floats, ...]
    log_det: float

    @classmethod
    def of(cls, matrices: Floats, log_det: float = np.nan) -> Self:
        """Return the inverse whose matrices ``[K, F, F]`` are all known."""
        none = np.zeros(0, dtype=np.int64)
        return cls(np.arange(len(matrices)), matrices, none, (), log_det)

    def dense(self) -> Floats:
        """Return the matrices of all regressions, ``[K, F, F]``."""
        if not self.halves:
            return self.matrices
        width = self.matrices.shape[-1]
        found = np.empty((len(self.numbers) + len(self.few), width, width))
        found[self.numbers] = self.matrices
        for number, half in zip(self.few, self.halves, strict=True):
            np.matmul(half.T, -half, out=found[number])
            found[number].flat[:: width + 1] += 1.0
        return found

    def times(self, vectors: Floats) -> Floats:
        """Multiply the matrices by vectors: ``[..., K, F] -> [..., K, F]``."""
        if not self.halves:
            return times(self.matrices, vectors)
        product = vectors.copy()
        product[..., self.numbers, :] = times(self.matrices, vectors[..., self.numbers, :])
        for number, half in zip(self.few, self.halves, strict=True):
            product[..., number, :] -= (vectors[..., number, :] @ half.T) @ half
        return product

    def weighted_sum(self, weights: Floats) -> Floats:
        """Return the sum of the matrices times their weights: ``[K] -> [F, F]``."""
        # ``numpy.tensordot`` gives the same, and takes three times as long for small matrices.
        width = self.matrices.shape[-1]
        flat = self.matrices.reshape(len(self.matrices), width * width)
        found: Floats = np.dot(weights[None, self.numbers], flat).reshape(width, width)
        if self.halves:
            rows = np.repeat(weights[self.few], [len(half) for half in self.halves])
            halves = np.concatenate(self.halves)
            found -= halves.T @ (rows[:, None] * halves)
            found.flat[:: width + 1] += weights[self.few].sum()
        return found

    def diagonal(self) -> Floats:
        """Return the sum of the diagonals of all matrices: ``[F]``."""
        found: Floats = np.einsum("kff->f", self.matrices)
        found = found + len(self.few)
        for half in self.halves:
            found -= np.einsum("nf,nf->f", half, half)
        return found

    def sandwiched(self, blocks: Callable[[int], Floats]) -> Floats:
        """Return the diagonal of Σ_k A_k⁻¹ B_k A_k⁻¹ for symmetric ``blocks`` B_k: ``[F]``.

        For A⁻¹ = I − Hᵀ H, the product is B − Hᵀ H B − B Hᵀ H + Hᵀ (H B Hᵀ) H.
        """
        found = np.zeros(self.matrices.shape[-1])
        for number, matrix in zip(self.numbers, self.matrices, strict=True):
            found += np.einsum("fg,fg->f", matrix @ blocks(number), matrix)
        for number, half in zip(self.few, self.halves, strict=True):
            block = blocks(number)
            seen = half @ block
            inner = (seen @ half.T) @ half
            inner -= 2 * seen
            found += np.diag(block) + np.einsum("nf,nf->f", half, inner)
        return found


class Posterior(NamedTuple):
    """The posterior N(mean, covariance) of the coefficients θ ``[K, F]`` of K regressions.

    All arrays are in units in which the prior variance of the kind ``OWN`` is 1: coefficients are
    ``unit [F]`` times the values here. If the regressions were independent, the covariance of
    regression k would be its ``inverse`` (I + G_k / σ²)⁻¹, with G_k the Gram matrix in these
    units. The directions U between regressions have the prior variances 1 + c instead of 1.
    With A⁻¹ = blockdiag(inverse) and C = diag(c), Woodbury's formula gives the covariance

        A⁻¹ + A⁻¹ U Q⁻¹ Uᵀ A⁻¹,  Q⁻¹ = C (I + H C)⁻¹,  H = Uᵀ (I − A⁻¹) U

    where ``coupling [q F, q F]`` is Q⁻¹. This costs K + q³ inversions of F × F matrices. c may be
    negative, down to −1, as for regressions whose rewards exclude each other. ``log_evidence`` is
    the logarithm of the marginal likelihood.
    """

    structure: PriorStructure
    prior: Prior
    centre: float
    unit: Floats
    sums: Sums
    inverse: Inverse
    coupling: Floats
    mean: Floats
    explained: float
    square: float
    log_evidence: float

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
        response = moment * (unit / prior.noise)
        known = None if inverse is None else Inverse.of(inverse)
        found = known or _inverted(sums, unit, prior.noise, rows)
        coupling, log_det_of_system = _coupling(structure, prior, found)
        mean = covariance_times(structure, found, response, lambda rows: rows @ coupling)
        explained = float(np.sum(response * mean))
        log_det = found.log_det + log_det_of_system
        spread = sums.weight * np.log(2 * np.pi * prior.noise) + square / prior.noise
        log_evidence = -(spread + log_det - explained) / 2
        return cls(
            structure, prior, centre, unit, sums, found, coupling, mean,
            explained, square, log_evidence,
        )  # fmt: skip

    @property
    def gram(self) -> Floats:
        """The Gram matrices G_k / σ² in these units, ``[K, F, F]``."""
        return self.sums.gram * (self.unit[:, None] * self.unit / self.prior.noise)

    @property
    def weight(self) -> float:
        """The weight of all rows."""
        return self.sums.weight

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
        for number, gram in enumerate(self.gram):
            root = _root(gram)
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
        precision = self.gram + np.eye(self.mean.shape[1])
        roots: Floats = np.linalg.inv(np.linalg.cholesky(precision)) * self.unit
        return roots

    def variance(self, features: Floats) -> Floats:
        """Return the posterior variance of φ·θ_k: ``[n, F] -> [n, K]``."""
        scaled = features * self.unit
        found = np.empty((len(features), len(self.mean)))
        for number, inverse in enumerate(self.inverse.dense()):
            alone = scaled @ inverse
            found[:, number] = np.einsum("nf,nf->n", alone, scaled)
            if len(self.coupling):
                weights = self.structure.directions[number]
                seen = (weights[:, None] * alone[:, None]).reshape(len(alone), -1)
                found[:, number] += np.einsum("ni,ni->n", seen @ self.coupling, seen)
        return found


def _coupling(structure: PriorStructure, prior: Prior, inverse: Inverse) -> tuple[Floats, float]:
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


def _inverted(sums: Sums, unit: Floats, noise: float, rows: FeatureRows | None) -> Inverse:
    """Return the inverse of I + G_k; if ``rows`` are given, they are those of the sums."""
    regressions, width = sums.moment.shape
    is_few = np.zeros(regressions, dtype=np.bool_)
    scaled, number = np.zeros((0, width)), np.zeros(0, dtype=np.int64)
    if rows is not None:
        is_few = np.bincount(rows.number, minlength=regressions) <= FEW_ROWS * width
        order = np.argsort(rows.number, kind="stable")
        number = rows.number[order]
        scaled = rows.features[order] * unit
        scaled *= np.sqrt(rows.weight[order] / noise)[:, None]
    numbers, few = np.flatnonzero(~is_few), np.flatnonzero(is_few)
    gram = sums.gram[numbers] if len(few) else sums.gram
    matrices, log_det = _inverses(gram * (unit[:, None] * unit / noise))
    halves = []
    for one in few:
        half, logarithm = _half(scaled[slice(*np.searchsorted(number, [one, one + 1]))])
        halves.append(half)
        log_det += logarithm
    return Inverse(numbers, matrices, few, tuple(halves), log_det)


def _inverses(gram: Floats) -> tuple[Floats, float]:
    """Return (I + G_k)⁻¹ for each matrix, and the sum of the log-determinants of I + G_k."""
    if gram.shape[-1] <= BATCHED_WIDTH:
        root = np.linalg.cholesky(gram + np.eye(gram.shape[-1]))
        inverse_root = np.linalg.inv(root)
        log_det = 2.0 * float(np.log(np.einsum("kff->kf", root)).sum())
        return inverse_root.swapaxes(1, 2) @ inverse_root, log_det
    inverse, log_det = np.empty_like(gram), 0.0
    for number, matrix in enumerate(gram):
        precision = matrix.copy(order="F")
        precision.flat[:: len(precision) + 1] += 1.0
        factor, _ = _checked(scipy.linalg.lapack.dpotrf(precision, lower=1, overwrite_a=1))
        log_det += 2.0 * float(np.log(np.diag(factor)).sum())
        lower, _ = _checked(scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1))
        # The other triangle is zero.
        np.add(lower, lower.T, out=inverse[number])
        inverse[number].flat[:: len(lower) + 1] *= 0.5
    return inverse, log_det


def _half(rows: Floats) -> tuple[Floats, float]:
    """Return H with (I + Rᵀ R)⁻¹ = I − Hᵀ H for rows R, and ln det(I + Rᵀ R).

    With the Cholesky factor L of I + R Rᵀ, H = L⁻¹ R, and the determinant is that of I + R Rᵀ.
    """
    if not len(rows):
        return rows, 0.0
    inner = rows @ rows.T
    inner.flat[:: len(inner) + 1] += 1.0
    root = np.linalg.cholesky(inner)
    # The transpose is what LAPACK reads without a copy: an upper triangular matrix.
    inverse_root, _ = _checked(scipy.linalg.lapack.dtrtri(root.T, lower=0))
    return inverse_root.T @ rows, 2.0 * float(np.log(np.diag(root)).sum())


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


def coupled_system(structure: PriorStructure, inverse: Inverse, change: Floats) -> Floats:
    """Return I + H C with H = Uᵀ (I − A⁻¹) U and C = diag(change): ``[q F, q F]``."""
    system: Floats = (np.eye(len(change)) - structure.projected(inverse.weighted_sum)) * change
    system.flat[:: len(system) + 1] += 1.0
    return system


def covariance_times(
    structure: PriorStructure,
    inverse: Inverse,
    response: Floats,
    couple: Callable[[Floats], Floats],
) -> Floats:
    """Multiply responses by the posterior covariance: ``[K, F]`` or ``[P, K, F]``, same shape back.

    ``couple`` multiplies rows ``[..., q F]`` by Q⁻¹; see `Posterior`. It is not called if the
    regressions are independent.
    """
    alone = inverse.times(response)
    directions = structure.directions
    if not directions.shape[1]:
        return alone
    projected = directions.T @ alone
    size = directions.shape[1] * alone.shape[-1]
    coupled = couple(projected.reshape(*projected.shape[:-2], size))
    back = directions @ coupled.reshape(projected.shape)
    return alone + inverse.times(back)
