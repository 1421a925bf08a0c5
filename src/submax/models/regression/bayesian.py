"""Bayesian linear regressions that share a prior, which is fitted by marginal likelihood."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import scipy

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.core.problem import ActionFeatures, Problem
from submax.core.serialization import serializable
from submax.core.spaces import Space

FEW_ROWS = 0.6
"""A regression with fewer rows than this share of its features is inverted by Woodbury's formula.
With more rows a Cholesky factorization is faster."""
ROUNDED_REWARD, ROUNDED_SQUARE = 1e-14, 1e-13
"""Rounding errors of a reward and of its square, relative to the offset and to the squared distance
of the mean from it: a smaller variance is not significant."""


@serializable("feature-rows")
class FeatureRows(NamedTuple):
    """Rows with ``features [n, F]``, the ``number [n]`` of their regression, and ``weight [n]``."""

    features: Floats
    number: Integers
    weight: Floats

    @classmethod
    def joined(cls, pieces: Sequence[Self], width: int) -> Self:
        if not pieces:
            return cls(np.zeros((0, width)), np.zeros(0, dtype=np.int64), np.zeros(0))
        return cls._make(np.concatenate(columns) for columns in zip(*pieces, strict=True))

    def of_each(self, regressions: int) -> list[Integers]:
        order = np.argsort(self.number, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.number, minlength=regressions))[:-1])


@serializable("sums")
class Sums(NamedTuple):
    """Sums over rows with features φ, reward r and weight w, for K regressions.

    ``gram [K, F, F]`` is Σ w φ φᵀ and ``moment [K, F]`` is Σ w (r − offset) φ over the rows of each
    regression; ``weight``, ``reward`` and ``square`` are Σ w, Σ w (r − offset) and
    Σ w (r − offset)² over all rows. The first feature must be the constant 1, and the ``offset``
    close to the rewards. Few rows take less time and memory than a matrix: those ``kept``, with
    Σ w φ in ``kept_total [K, F]``, are in ``gram`` only once they are `settled`.
    """

    gram: Floats
    moment: Floats
    weight: float
    reward: float
    square: float
    offset: float
    kept: tuple[FeatureRows, ...] = ()
    kept_total: Floats | None = None

    @classmethod
    def empty(cls, regressions: int, features: int, offset: float) -> Self:
        gram = np.zeros((regressions, features, features))
        return cls(gram, np.zeros((regressions, features)), 0.0, 0.0, 0.0, offset)

    def add(self, features: Floats, number: Integers, reward: Floats, weight: Floats) -> Self:
        """Return the sums with more rows: ``features [n, F]`` of the regressions ``number [n]``."""
        return self.keep(features, number, reward, weight).settled(0.0)

    def keep(self, features: Floats, number: Integers, reward: Floats, weight: Floats) -> Self:
        """Return the sums with more rows, kept as they are."""
        if not len(reward):
            return self
        relative = reward - self.offset
        regressions, width = self.moment.shape
        weights = np.zeros((2, regressions, len(reward)))
        place = np.arange(len(reward))
        weights[0, number, place], weights[1, number, place] = weight * relative, weight
        moment, total = (weights.reshape(-1, len(reward)) @ features).reshape(2, regressions, width)
        kept = (*self.kept, FeatureRows(features, number, weight))
        sums = self._replace(
            moment=self.moment + moment,
            weight=self.weight + float(weight.sum()),
            reward=self.reward + float(weight @ relative),
            square=self.square + float(weight @ relative**2),
            kept=kept,
            kept_total=total if self.kept_total is None else self.kept_total + total,
        )
        # So many rows take as much memory as the matrices.
        return sums.settled() if sum(len(rows.weight) for rows in kept) > moment.size else sums

    def settled(self, few: float | None = None) -> Self:
        """Return the sums with kept rows in ``gram``, except in regressions with few rows.

        These have at most the share ``few`` of the number of features, by default ``FEW_ROWS``.
        """
        if self.kept_total is None:
            return self
        regressions, width = self.moment.shape
        rows = FeatureRows.joined(self.kept, width)
        count = np.bincount(rows.number, minlength=regressions)
        many = (self.summed | (count > (FEW_ROWS if few is None else few) * width)) & (count > 0)
        if not many.any():
            return self._replace(kept=(rows,))
        # Zeros take no time until they are written.
        gram = self.gram.copy() if self.summed.any() else np.zeros(self.gram.shape)
        of_each = rows.of_each(regressions)
        for one in np.flatnonzero(many):
            mine = rows.features[of_each[one]]
            _add_product(gram[one], 1.0, mine * rows.weight[of_each[one], None], mine)
        left = ~many[rows.number]
        if not left.any():
            return self._replace(gram=gram, kept=(), kept_total=None)
        total = np.where(many[:, None], 0.0, self.kept_total)
        kept = FeatureRows(*(column[left] for column in rows))
        return self._replace(gram=gram, kept=(kept,), kept_total=total)

    @property
    def summed(self) -> Any:
        """Which regressions have rows in ``gram``, ``[K]``."""
        return np.einsum("kff->k", self.gram) > 0

    @property
    def total(self) -> Floats:
        """Σ w φ of each regression, ``[K, F]``."""
        of_gram = self.gram[:, :, 0]
        return of_gram if self.kept_total is None else of_gram + self.kept_total

    def squared(self, coefficients: Floats) -> float:
        """Return Σ w (φ·θ)² over all rows, for the coefficients θ ``[K, F]``."""
        summed, gram, theta = self.summed, self.gram, coefficients
        if not summed.all():
            gram, theta = gram[summed], theta[summed]
        found = float(np.sum(theta * times(gram, theta)))
        for rows in self.kept:
            value = np.einsum("nf,nf->n", rows.features, coefficients[rows.number])
            found += float(rows.weight @ value**2)
        return found

    def joined(self, other: Self) -> Self:
        """Return the sums over the rows of both, with the offset of this one."""
        if self.kept or other.kept:
            return self.settled(0.0).joined(other.settled(0.0))
        moment, square = other.centred(self.offset)
        return self._replace(
            gram=self.gram + other.gram,
            moment=self.moment + moment,
            weight=self.weight + other.weight,
            reward=self.reward + other.reward - (self.offset - other.offset) * other.weight,
            square=self.square + square,
        )

    def faded(self, factor: float) -> Self:
        return self._replace(
            gram=self.gram * factor,
            moment=self.moment * factor,
            weight=self.weight * factor,
            reward=self.reward * factor,
            square=self.square * factor,
            kept=tuple(rows._replace(weight=rows.weight * factor) for rows in self.kept),
            kept_total=None if self.kept_total is None else self.kept_total * factor,
        )

    def centred(self, centre: float) -> tuple[Floats, float]:
        """Return Σ w (r − centre) φ for each regression, and Σ w (r − centre)² over all rows."""
        shift = centre - self.offset
        square = self.square - 2 * shift * self.reward + shift**2 * self.weight
        return self.moment - shift * self.total, max(square, 0.0)

    @property
    def variance(self) -> float:
        """Variance of the rewards; 0 without rows, or if rounding errors can explain it."""
        if self.weight <= 0:
            return 0.0
        mean = self.reward / self.weight
        spread = self.square / self.weight - mean**2
        rounding = (ROUNDED_REWARD * self.offset) ** 2 + ROUNDED_SQUARE * mean**2
        return spread if spread > rounding else 0.0


Known = TypeVar("Known")


def known(value: Known | None) -> Known:
    """Return a part of a belief that exists once something was learned."""
    assert value is not None, "nothing was learned"
    return value


def check_can_learn(feature_map: object, sums: object) -> None:
    """Raise an ``InputError`` if a belief has a map, but not the sums to learn further."""
    if feature_map is not None and sums is None:
        raise InputError(
            "this state was stored to decide, without the sums that further learning needs: fit a "
            "new state to all rows, or store the state for learning"
        )


OWN, COMMON, ALIKE = 0, 1, 2
"""The kinds of directions between regressions: ``OWN`` is specific to one regression, ``COMMON``
changes all regressions equally, ``ALIKE`` changes regressions with similar actions equally."""
KINDS = 3
DESCRIBED_SHARE = 0.1
"""If actions have features, the variance of the kind ``OWN`` starts at this share of the others, so
that the fit explains the rewards by the action features first."""
SMALLEST = 1e-8
"""Relative tolerance: shorter directions, and smaller differences, are rounding errors."""


class PriorStructure(NamedTuple):
    """Components of the coefficients that share a prior variance: by group and kind.

    ``groups [F]`` is the group of each feature. The columns of ``directions [K, q]`` between the
    regressions are orthonormal, and ``kinds [q]`` is the kind of each; everything orthogonal to
    them has the kind ``OWN``.
    """

    groups: Integers
    directions: Floats
    kinds: Integers

    @classmethod
    def independent(cls, groups: Integers, regressions: int) -> Self:
        """Return the structure of regressions that share nothing but the prior variances."""
        return cls(groups, np.zeros((regressions, 0)), np.zeros(0, dtype=np.int64))

    @classmethod
    def sharing(cls, groups: Integers, regressions: int, described: Floats | None = None) -> Self:
        """Return the structure of correlated regressions, the more so with similar ``described``.

        The numbers ``described [K, q]`` describe the action of each regression.
        """
        if regressions == 1:
            return cls.independent(groups, 1)
        common = np.full((regressions, 1), regressions**-0.5)
        if described is None:
            return cls(groups, common, np.array([COMMON]))
        centred = described - described.mean(axis=0)
        length = np.linalg.norm(centred, axis=0)
        differs = length > SMALLEST * np.abs(described).max(axis=0, initial=0.0)
        contrasts = centred[:, differs] / length[differs]
        left, length, _ = np.linalg.svd(contrasts, full_matrices=False)
        basis = left[:, length > SMALLEST * length.max(initial=0.0)]
        kinds = np.array([COMMON] + [ALIKE] * basis.shape[1])
        return cls(groups, np.concatenate([common, basis], axis=1), kinds)

    def dimensions(self, groups: int) -> Floats:
        """Return how many components each group of features and kind has: ``[groups, kinds]``."""
        of_kind = np.bincount(self.kinds, minlength=KINDS)
        of_kind[OWN] = len(self.directions) - len(self.kinds)
        features = np.bincount(self.groups, minlength=groups).astype(np.float64)
        return features[:, None] * of_kind

    def projected(self, weighted_sum: Callable[[Floats], Floats]) -> Floats:
        """Return Uᵀ blockdiag(matrices) U for the directions U: ``[q F, q F]``.

        ``weighted_sum`` returns the sum of the K matrices times weights: ``[K] -> [F, F]``.
        """
        directions = self.directions
        count, features = directions.shape[1], len(self.groups)
        if count == 1:
            return weighted_sum(directions[:, 0] ** 2)
        blocks = np.empty((count, features, count, features))
        for one in range(count):
            for other in range(one + 1):
                block = weighted_sum(directions[:, one] * directions[:, other])
                blocks[one, :, other], blocks[other, :, one] = block, block
        return blocks.reshape(count * features, count * features)


@serializable("prior")
class Prior(NamedTuple):
    """The ``noise`` variance of a reward, and the ``variance [groups, kinds]`` of coefficients."""

    noise: float
    variance: Floats

    @classmethod
    def vague(cls, groups: int, variance: float, described: bool = False) -> Self:
        """Return the prior from which fitting starts, for rewards with this ``variance``.

        If actions are ``described``, the kind ``OWN`` starts small: of two local maxima of the
        marginal likelihood, one leaves the features of actions unused.
        """
        variances = np.full((groups, KINDS), variance / 2)
        if described:
            variances[:, OWN] *= DESCRIBED_SHARE
        return cls(variance / 2, variances)

    def relative_variances(self, structure: PriorStructure) -> Floats:
        """Return the variances along the directions, relative to the kind ``OWN``: ``[q, F]``."""
        ratio = self.variance / self.variance[:, OWN, None]
        return ratio[structure.groups][:, structure.kinds].T


BATCHED_WIDTH = 48
"""Up to this width, numpy factorizes the matrices of all regressions in one call, since the calls
would take longer than the work; wider matrices go to LAPACK one by one."""


@serializable("inverse")
class Inverse(NamedTuple):
    """(I + G_k)⁻¹ for each of K regressions, as B_k − H_kᵀ H_k.

    B_k is one of the ``matrices [m, F, F]`` for the regressions ``numbers [m]``, and I for the
    others, which have few rows. The ``halves`` H_k ``[n_k, F]`` have a row for each row that B_k
    does not know. ``log_det`` is Σ ln det(I + G_k), NaN if it is unknown.
    """

    numbers: Integers
    matrices: Floats
    halves: tuple[Floats, ...]
    log_det: float

    @classmethod
    def of(cls, sums: Sums, unit: Floats, noise: float) -> Self:
        """Return the inverses for the Gram matrices in the ``unit``, divided by σ²."""
        sums = sums.settled()
        regressions, width = sums.moment.shape
        summed = sums.summed
        gram = sums.gram if summed.all() else sums.gram[summed]
        matrices, log_det = _inverses(gram, unit[:, None] * unit / noise)
        rows = FeatureRows.joined(sums.kept, width)
        scaled = rows.features * unit
        scaled *= np.sqrt(rows.weight / noise)[:, None]
        halves = []
        for mine in rows.of_each(regressions):
            half, logarithm = _half(scaled[mine])
            halves.append(half)
            log_det += logarithm
        return cls(np.flatnonzero(summed), matrices, tuple(halves), log_det)

    def dense(self) -> Floats:
        """Return all matrices, ``[K, F, F]``."""
        width = self.matrices.shape[-1]
        found = np.zeros((len(self.halves), width, width))
        found[self.alone, range(width), range(width)] = 1.0
        found[self.numbers] = self.matrices
        for matrix, half in zip(found, self.halves, strict=True):
            _add_product(matrix, -1.0, half, half)
        return found

    @property
    def alone(self) -> Any:
        """The regressions whose B_k is I, as an index of a column of numbers."""
        return np.delete(np.arange(len(self.halves)), self.numbers)[:, None]

    def times(self, vectors: Floats) -> Floats:
        """Multiply the matrices by vectors: ``[..., K, F] -> [..., K, F]``."""
        if len(self.numbers) == len(self.halves):
            product = times(self.matrices, vectors)
        else:
            product = vectors.copy()
            product[..., self.numbers, :] = times(self.matrices, vectors[..., self.numbers, :])
        for number, half in enumerate(self.halves):
            if len(half):
                product[..., number, :] -= (vectors[..., number, :] @ half.T) @ half
        return product

    def weighted_sum(self, weights: Floats) -> Floats:
        """Return the sum of the matrices times their weights: ``[K] -> [F, F]``."""
        # ``numpy.tensordot`` gives the same, and takes three times as long for small matrices.
        width = self.matrices.shape[-1]
        flat = self.matrices.reshape(len(self.matrices), width * width)
        found: Floats = np.dot(weights[None, self.numbers], flat).reshape(width, width)
        found.flat[:: width + 1] += weights[self.alone].sum()
        lengths = [len(half) for half in self.halves]
        if any(lengths):
            weight, halves = np.repeat(weights, lengths)[:, None], np.concatenate(self.halves)
            _add_product(found, -1.0, weight * halves, halves)
        return found

    def diagonal(self) -> Floats:
        """Return the sum of the diagonals of all matrices: ``[F]``."""
        found: Floats = np.einsum("kff->f", self.matrices)
        found = found + (len(self.halves) - len(self.numbers))
        for half in self.halves:
            found -= np.einsum("nf,nf->f", half, half)
        return found

    def sandwiched(self, blocks: Callable[[int], Floats]) -> Floats:
        """Return the diagonal of Σ_k A_k⁻¹ B_k A_k⁻¹ for symmetric ``blocks`` B_k: ``[F]``.

        For A⁻¹ = I − Hᵀ H, the product is B − Hᵀ H B − B Hᵀ H + Hᵀ (H B Hᵀ) H.
        """
        found = np.zeros(self.matrices.shape[-1])
        for number, matrix in zip(self.numbers, self.matrices, strict=True):
            half = self.halves[number]
            if len(half):
                matrix = _add_product(matrix.copy(), -1.0, half, half)
            found += np.einsum("fg,fg->f", matrix @ blocks(number), matrix)
        for number in self.alone[:, 0]:
            block, half = blocks(number), self.halves[number]
            found += np.diag(block)
            if len(half):
                seen = half @ block
                inner = (seen @ half.T) @ half
                inner -= 2 * seen
                found += np.einsum("nf,nf->f", half, inner)
        return found

    def with_rows(self, rows: FeatureRows) -> Self:
        """Return the inverse after more rows φ, which add w φ φᵀ to G_k.

        With the new rows R_k = √w φ, the formula of Woodbury gives a further half
        L⁻¹ R_k A_k⁻¹, where L is the Cholesky factor of I + R_k A_k⁻¹ R_kᵀ.
        """
        scaled = rows.features * np.sqrt(rows.weight)[:, None]
        place = dict(zip(self.numbers.tolist(), range(len(self.numbers)), strict=True))
        halves = list(self.halves)
        for one, mine in enumerate(rows.of_each(len(halves))):
            if not len(mine):
                continue
            new, half = scaled[mine], halves[one]
            seen = new @ self.matrices[place[one]] if one in place else new
            if len(half):
                seen = seen - (new @ half.T) @ half
            inner = seen @ new.T
            inner.flat[:: len(inner) + 1] += 1.0
            root = np.linalg.cholesky(inner)
            further, _ = checked(scipy.linalg.lapack.dtrtrs(root, seen, lower=1))
            halves[one] = np.concatenate([half, further])
        found = self._replace(halves=tuple(halves), log_det=np.nan)
        width = self.matrices.shape[-1]
        if max(map(len, halves)) <= width:
            return found
        # With more rows than features, matrices take less time.
        none = (np.zeros((0, width)),) * len(halves)
        return type(self)(np.arange(len(halves)), found.dense(), none, np.nan)


def _add_product(matrix: Floats, factor: float, left: Floats, right: Floats) -> Floats:
    """Add ``factor`` leftᵀ right, which must be symmetric, to a symmetric matrix in place."""
    # BLAS updates its own column-major matrix: the transpose, which is the same.
    if len(left):
        scipy.linalg.blas.dgemm(
            factor, left.T, right.T, 1.0, matrix.T, trans_b=True, overwrite_c=True
        )
    return matrix


def _inverses(gram: Floats, factor: Floats) -> tuple[Floats, float]:
    """Return (I + G_k)⁻¹ for G_k = ``gram`` times ``factor [F, F]``, and Σ ln det(I + G_k)."""
    if gram.shape[-1] <= BATCHED_WIDTH:
        root = np.linalg.cholesky(gram * factor + np.eye(gram.shape[-1]))
        inverse_root = np.linalg.inv(root)
        log_det = 2.0 * float(np.log(np.einsum("kff->kf", root)).sum())
        return inverse_root.swapaxes(1, 2) @ inverse_root, log_det
    inverse, log_det = np.empty_like(gram), 0.0
    for number, matrix in enumerate(gram):
        precision = matrix * factor
        precision.flat[:: len(precision) + 1] += 1.0
        # The transpose is the same symmetric matrix, and LAPACK need not copy it.
        root, _ = checked(scipy.linalg.lapack.dpotrf(precision.T, lower=1, overwrite_a=1))
        log_det += 2.0 * float(np.log(np.diag(root)).sum())
        lower, _ = checked(scipy.linalg.lapack.dpotri(root, lower=1, overwrite_c=1))
        # The other triangle is zero.
        np.add(lower, lower.T, out=inverse[number])
        inverse[number].flat[:: len(lower) + 1] *= 0.5
    return inverse, log_det


def _half(rows: Floats) -> tuple[Floats, float]:
    """Return L⁻¹ R with L Lᵀ = I + R Rᵀ, so (I + Rᵀ R)⁻¹ = I − Hᵀ H, and ln det(I + Rᵀ R)."""
    if not len(rows):
        return rows, 0.0
    inner = rows @ rows.T
    inner.flat[:: len(inner) + 1] += 1.0
    root = np.linalg.cholesky(inner)
    # The transpose is what LAPACK reads without a copy: an upper triangular matrix.
    inverse_root, _ = checked(scipy.linalg.lapack.dtrtri(root.T, lower=0))
    return inverse_root.T @ rows, 2.0 * float(np.log(np.diag(root)).sum())


def checked(result: Any) -> Any:
    """Return the result of a LAPACK routine, or raise if the matrix was not positive definite."""
    if result[-1] != 0:
        raise np.linalg.LinAlgError("a precision matrix is not positive definite")
    return result


def times(matrices: Floats, vectors: Floats) -> Floats:
    """Multiply symmetric matrices by vectors: ``[K, F, F]`` and ``[..., K, F] -> [..., K, F]``."""
    if vectors.ndim == 2:
        return (matrices @ vectors[..., None])[..., 0]
    product = vectors.swapaxes(0, 1) @ matrices
    return product.swapaxes(0, 1)


class Coupling(NamedTuple):
    """Q⁻¹ = C (I + H C)⁻¹ of a posterior covariance, not computed where it is only multiplied.

    ``along [q F, q F]`` is Uᵀ A⁻¹ U, so H = I − ``along``; ``change [q F]`` is the diagonal of C,
    and ``factor`` and ``pivots`` are the LU factorization of the transpose of I + H C.
    """

    along: Floats
    change: Floats
    factor: Floats
    pivots: Integers

    @classmethod
    def of(cls, structure: PriorStructure, prior: Prior, inverse: Inverse) -> Self | None:
        """Return Q⁻¹; None if the regressions are independent."""
        if not len(structure.kinds):
            return None
        # The relative prior variances along the directions, minus 1.
        change = (prior.relative_variances(structure) - 1.0).ravel()
        along = structure.projected(inverse.weighted_sum)
        system = (np.eye(len(change)) - along) * change
        system.flat[:: len(system) + 1] += 1.0
        # LAPACK need not copy the transpose.
        factor, pivots, _ = checked(scipy.linalg.lapack.dgetrf(system.T, overwrite_a=1))
        return cls(along, change, factor, pivots)

    @property
    def log_det(self) -> float:
        """The logarithm of det(I + H C)."""
        return float(np.log(np.abs(np.diag(self.factor))).sum())

    def times(self, rows: Floats) -> Floats:
        """Multiply rows by Q⁻¹: ``[..., q F] -> [..., q F]``."""
        columns = rows.reshape(-1, rows.shape[-1]).T
        solved, _ = checked(scipy.linalg.lapack.dgetrs(self.factor, self.pivots, columns, trans=1))
        coupled: Floats = self.change * solved.T
        return coupled.reshape(rows.shape)

    def matrix(self) -> Floats:
        """Return Q⁻¹, ``[q F, q F]``."""
        inverted, _ = checked(scipy.linalg.lapack.dgetri(self.factor, self.pivots))
        coupling = self.change[:, None] * inverted.T
        return (coupling + coupling.T) / 2


@serializable("posterior-covariance")
class PosteriorCovariance(NamedTuple):
    """The posterior covariance under a fixed prior; it maps responses to coefficients.

    All arrays are in units in which the prior variance of the kind ``OWN`` is 1: coefficients are
    ``unit [F]`` times the values here. Independent regressions have the covariances ``inverse``,
    (I + G_k / σ²)⁻¹ with G_k the Gram matrix in these units. The directions U between regressions
    have the prior variances 1 + c instead of 1, with c down to −1 for rewards that exclude each
    other. With A⁻¹ = blockdiag(inverse) and C = diag(c), Woodbury's formula gives the covariance

        A⁻¹ + A⁻¹ U Q⁻¹ Uᵀ A⁻¹,  Q⁻¹ = C (I + H C)⁻¹,  H = Uᵀ (I − A⁻¹) U

    where `Coupling` is Q⁻¹. This costs K + q³ inversions of F × F matrices; a new row costs F².
    """

    prior: Prior
    unit: Floats
    inverse: Inverse

    @classmethod
    def of(cls, sums: Sums, structure: PriorStructure, prior: Prior) -> Self:
        """Return the covariance after all rows of the sums."""
        unit = np.sqrt(prior.variance[structure.groups, OWN])
        return cls(prior, unit, Inverse.of(sums, unit, prior.noise))

    def with_rows(self, features: Floats, number: Integers, weight: Floats) -> Self:
        """Return the covariance after more rows: ``features [n, F]`` of regressions ``number``."""
        rows = FeatureRows(features * self.unit, number, weight / self.prior.noise)
        return self._replace(inverse=self.inverse.with_rows(rows))

    def applied(
        self, structure: PriorStructure, response: Floats, coupled: Coupling | None = None
    ) -> Floats:
        """Multiply responses ``[..., K, F]`` by the covariance; ``coupled`` is Q⁻¹, if known."""
        coupled = coupled or Coupling.of(structure, self.prior, self.inverse)
        alone = self.inverse.times(response)
        if coupled is None:
            return alone
        projected = structure.directions.T @ alone
        back = coupled.times(projected.reshape(*projected.shape[:-2], -1)).reshape(projected.shape)
        return alone + self.inverse.times(structure.directions @ back)

    def draw_responses(self, structure: PriorStructure, normal: Floats, noise: Floats) -> Floats:
        """Return random responses such that ``applied`` gives posterior draws minus the mean.

        All arrays are ``[P, K, F]``: ``normal`` are standard normal numbers, and ``noise`` is
        Σ √w φ ε over the rows of each regression, with a standard normal ε for each row and draw.
        With the prior covariance B, the response B^(−1/2) normal − noise has the covariance
        B⁻¹ + G / σ², the precision of the posterior.

        Reference: Wilson et al. (2021), Pathwise conditioning of Gaussian processes.
        """
        factor = self.prior.relative_variances(structure) ** -0.5
        change: Floats = (structure.directions.T @ normal) * (factor - 1.0)
        response = normal + structure.directions @ change
        response -= noise * (self.unit / np.sqrt(self.prior.noise))
        return response

    def roots(self) -> Floats:
        """Return R_k with R_kᵀ R_k = the covariance of θ_k: ``[K, F, F]``.

        The regressions must be independent. The posterior variance of φ·θ_k is then |R_k φ|².
        """
        root = np.linalg.cholesky(self.inverse.dense())
        return root.swapaxes(1, 2) * self.unit


class Posterior(NamedTuple):
    """The posterior of the coefficients θ ``[K, F]`` of K regressions, see `PosteriorCovariance`.

    ``mean`` is in the units of the ``covariance``, and ``coupled`` is its Q⁻¹, None if the
    regressions are independent. ``log_evidence`` is the logarithm of the marginal likelihood.
    """

    structure: PriorStructure
    covariance: PosteriorCovariance
    sums: Sums
    coupled: Coupling | None
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
        covariance: PosteriorCovariance | None = None,
    ) -> Self:
        """Return the posterior of the coefficients of rewards minus ``centre``.

        A ``covariance`` that is passed is not computed; after `with_rows` the evidence is NaN.
        """
        found = covariance or PosteriorCovariance.of(sums, structure, prior)
        moment, square = sums.centred(centre)
        response = moment * (found.unit / prior.noise)
        coupled = Coupling.of(structure, prior, found.inverse)
        mean = found.applied(structure, response, coupled)
        explained = float(np.sum(response * mean))
        log_det = found.inverse.log_det + (0.0 if coupled is None else coupled.log_det)
        spread = sums.weight * np.log(2 * np.pi * prior.noise) + square / prior.noise
        evidence = -(spread + log_det - explained) / 2
        return cls(structure, found, sums, coupled, mean, explained, square, evidence)

    @property
    def prior(self) -> Prior:
        return self.covariance.prior

    @property
    def coefficients(self) -> Floats:
        """The posterior mean of θ, ``[K, F]``."""
        return self.mean * self.covariance.unit


LARGEST_STEP = 100.0
"""Largest factor by which a variance changes in one step, so a step cannot overshoot far."""
RANGE = 1e8
"""Fitted variances stay within this factor of the variance of the rewards."""
LEAST_NOISE = 1e-4
"""Smallest noise variance, as a share of the variance of the rewards."""
EXPECTED_SHARE = 0.003
"""Every variance is fitted as if one more component had been observed, whose square is this share
of the variance of the rewards. Without it the variance of a few components, such as the constants
of a handful of actions, often becomes zero by chance and stays there."""


class CoefficientMoments(NamedTuple):
    """Sums of squared posterior means and of posterior variances, ``[groups, kinds]``.

    Both are relative to the prior variance of the kind ``OWN``. ``residual`` is the sum of squared
    residuals at the posterior mean, and ``used`` the effective number of fitted parameters.
    """

    squares: Floats
    variances: Floats
    residual: float
    used: float


def fitted(
    sums: Sums,
    structure: PriorStructure,
    prior: Prior,
    centre: float,
    steps: int,
    least_noise: float = 0.0,
) -> Posterior:
    """Return the posterior after improving the prior by ``steps`` fixed-point steps.

    A step sets each variance to (s + Σ E[θ]²) / (1 + γ). Here γ = Σ (1 − Var[θ] / prior variance)
    is the number of components that the data determine, and s is 0.003 times the variance of the
    rewards. The noise becomes the sum of squared residuals, divided by the weight of the rows minus
    the sum of all γ, and is at least ``least_noise``. At a fixed point the derivatives of the
    marginal likelihood, times an inverse gamma density of each variance, are zero.

    Reference: MacKay (1992), Bayesian interpolation.
    """
    found = Posterior.of(sums, structure, prior, centre)
    for _ in range(steps):
        found = Posterior.of(sums, structure, improved(found, least_noise), centre)
    return found


def moments_of(posterior: Posterior) -> CoefficientMoments:
    """Return the moments from which the prior is fitted."""
    structure, inverse, mean = posterior.structure, posterior.covariance.inverse, posterior.mean
    own = inverse.diagonal()
    # tr(G · covariance) with G = A − I.
    used = mean.size - own.sum()
    spread = np.zeros((0, mean.shape[1]))
    if posterior.coupled is not None:
        # The variances along the directions are the diagonal of T + T Q⁻¹ T with T = Uᵀ A⁻¹ U.
        along, coupling = posterior.coupled.along, posterior.coupled.matrix()
        spread = np.diag(along) + np.einsum("ij,ij->i", along @ coupling, along)
        spread = spread.reshape(-1, mean.shape[1])
        taken = inverse.sandwiched(_blocks(structure.directions, coupling))
        own += taken
        used += np.vdot(along, coupling) - taken.sum()
    projected = structure.directions.T @ mean
    squares = np.zeros((len(posterior.prior.variance), KINDS))
    variances = np.zeros_like(squares)
    kinds = np.concatenate([[OWN], structure.kinds])
    square_rows = np.vstack([(mean**2).sum(axis=0) - (projected**2).sum(axis=0), projected**2])
    variance_rows = np.vstack([own - spread.sum(axis=0), spread])
    for kind, square, variance in zip(kinds, square_rows, variance_rows, strict=True):
        squares[:, kind] += np.bincount(structure.groups, square, len(squares))
        variances[:, kind] += np.bincount(structure.groups, variance, len(squares))
    fit = posterior.sums.squared(posterior.coefficients)
    residual = posterior.square - 2 * posterior.explained * posterior.prior.noise + fit
    return CoefficientMoments(squares, variances, max(residual, 0.0), float(used))


def _blocks(directions: Floats, coupling: Floats) -> Callable[[int], Floats]:
    """Return a function that returns u_kᵀ Q⁻¹ u_k of a regression k: ``[F, F]``."""
    count = directions.shape[1]
    features = len(coupling) // count
    if count == 1 and np.ptp(directions) == 0:
        alike: Floats = directions[0] ** 2 * coupling
        return lambda number: alike
    blocks = coupling.reshape(count, features, count, features).swapaxes(1, 2)
    flat = blocks.reshape(count * count, features * features)

    def block(number: int) -> Floats:
        pairs = np.outer(directions[number], directions[number]).reshape(1, -1)
        return (pairs @ flat).reshape(features, features)

    return block


def improved(posterior: Posterior, least_noise: float = 0.0) -> Prior:
    """Return the prior after one fixed-point step; see `fitted`."""
    reward_variance = posterior.sums.variance
    if reward_variance <= 0:
        # Equal rewards carry no information about the prior. They occur with a discount, too.
        return posterior.prior
    moments, prior = moments_of(posterior), posterior.prior
    dimensions = posterior.structure.dimensions(len(prior.variance))
    ratio = prior.variance / prior.variance[:, OWN, None]
    determined = np.maximum(dimensions - moments.variances / ratio, 0.0)
    squares = moments.squares * prior.variance[:, OWN, None] + EXPECTED_SHARE * reward_variance
    factor = np.where(dimensions > 0, squares / (1 + determined) / prior.variance, 1.0)
    variance = prior.variance * np.clip(factor, 1 / LARGEST_STEP, LARGEST_STEP)
    variance = np.clip(variance, reward_variance / RANGE, reward_variance * RANGE)
    weight = posterior.sums.weight
    left = max(weight - moments.used, 0.1 * weight)
    noise = max(moments.residual / left, LEAST_NOISE * reward_variance, least_noise)
    return Prior(noise, variance)


MOST_COLUMNS = 16
"""Largest number of columns that describe actions; more are reduced to this many principal
components, since the cost of a fit grows with the third power of their number."""
FEWEST_ACTIONS = 3
"""With fewer actions, features cannot tell which of them are similar."""


def described_actions(problem: Problem) -> Floats | None:
    """Return the features of every joint action as at most 16 orthogonal columns, ``[K, q]``.

    They are those of its choices in all slots, standardized over the actions. A feature in which
    only one action differs is left out, since it relates no actions. None if no feature is left.
    """
    if not any(problem.action_features) or problem.space.size < FEWEST_ACTIONS:
        return None
    return _components(problem.space, problem.action_features)


@lru_cache(maxsize=16)
def _components(space: Space, features: ActionFeatures) -> Floats | None:
    joint = space.listing()
    parts = [np.array(rows)[joint[:, slot]] for slot, rows in enumerate(features) if rows]
    numbers = np.concatenate(parts, axis=1, dtype=np.float64)
    # Columns that still differ between actions if any single action is left out.
    ordered = np.sort(numbers, axis=0)
    without_one = np.minimum(ordered[-1] - ordered[1], ordered[-2] - ordered[0])
    numbers = numbers[:, without_one > SMALLEST * np.abs(numbers).max(axis=0, initial=0.0)]
    centred = numbers - numbers.mean(axis=0)
    standardized = centred / np.sqrt(np.mean(centred**2, axis=0))
    left, length, _ = np.linalg.svd(standardized, full_matrices=False)
    # If there were as many columns as actions, no two actions would be similar.
    most = min(MOST_COLUMNS, max(1, len(joint) // 2))
    kept = length[:most] > SMALLEST * length.max(initial=0.0)
    if not kept.any():
        return None
    components: Floats = (left * length)[:, : int(kept.sum())]
    components.flags.writeable = False
    return components
