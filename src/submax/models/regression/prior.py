"""The prior of several regressions, and how their coefficients are related."""

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.running.stored import stored

OWN, COMMON, ALIKE = 0, 1, 2
"""The kinds of directions between regressions: ``OWN`` is specific to one regression, ``COMMON``
changes all regressions equally, ``ALIKE`` changes regressions with similar actions equally."""
KINDS = 3
"""Number of kinds."""
DESCRIBED_SHARE = 0.1
"""If actions have features, the variance of the kind ``OWN`` starts at this share of the others, so
that the fit explains the rewards by the action features first."""
SMALLEST = 1e-8
"""Relative tolerance: directions shorter than this share of the longest one are rounding errors,
and numbers that differ by less than this share of the largest one count as equal."""


class PriorStructure(NamedTuple):
    """Groups of features, and directions between regressions, that share a prior variance.

    ``groups [F]`` is the number of the group of each feature. The columns of ``directions [K, q]``
    are orthonormal, and ``kinds [q]`` is the kind of each; everything orthogonal to them has the
    kind ``OWN``. A component of the coefficients has the prior variance of its feature's group and
    its direction's kind.
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
        """Return the structure of regressions whose coefficients are correlated.

        ``described [K, q]`` are numbers that describe the action of each regression: regressions
        with similar numbers are expected to have similar coefficients.
        """
        if regressions == 1:
            return cls.independent(groups, 1)
        common = np.full((regressions, 1), regressions**-0.5)
        columns = np.zeros((regressions, 0)) if described is None else _unit_contrasts(described)
        left, length, _ = np.linalg.svd(columns, full_matrices=False)
        basis = left[:, length > SMALLEST * length.max(initial=0.0)]
        kinds = np.array([COMMON] + [ALIKE] * basis.shape[1])
        return cls(groups, np.concatenate([common, basis], axis=1), kinds)

    @property
    def regressions(self) -> int:
        """Number of regressions (K)."""
        return len(self.directions)

    def dimensions(self, groups: int) -> Floats:
        """Return the number of components of each group of features and kind: ``[groups, kinds]``.

        ``groups`` is the number of groups.
        """
        of_kind = np.bincount(self.kinds, minlength=KINDS)
        of_kind[OWN] = self.regressions - len(self.kinds)
        features = np.bincount(self.groups, minlength=groups).astype(np.float64)
        found: Floats = features[:, None] * of_kind
        return found

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

    def scaled(self, vectors: Floats, factor: Floats) -> Floats:
        """Multiply the components along the directions by ``factor [q, F]``: ``[..., K, F]``."""
        change: Floats = (self.directions.T @ vectors) * (factor - 1.0)
        return vectors + self.directions @ change


@stored("prior")
class Prior(NamedTuple):
    """The ``noise`` variance of a reward, and the ``variance [groups, kinds]`` of coefficients."""

    noise: float
    variance: Floats

    @classmethod
    def vague(cls, groups: int, variance: float, described: bool = False) -> Self:
        """Return the prior from which fitting starts, for rewards with this ``variance``.

        If actions are ``described`` by features, the variance of the kind ``OWN`` starts small. The
        marginal likelihood then has two local maxima, and with a large start the fit could end at
        the one that leaves the action features unused.
        """
        variances = np.full((groups, KINDS), variance / 2)
        if described:
            variances[:, OWN] *= DESCRIBED_SHARE
        return cls(variance / 2, variances)

    def relative_variances(self, structure: PriorStructure) -> Floats:
        """Return the variances along the directions, relative to the kind ``OWN``: ``[q, F]``."""
        ratio = self.variance / self.variance[:, OWN, None]
        return ratio[structure.groups][:, structure.kinds].T


def _unit_contrasts(described: Floats) -> Floats:
    """Centre the columns, scale them to length 1, and drop those that do not differ."""
    centred = described - described.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    differs = length > SMALLEST * np.abs(described).max(axis=0, initial=0.0)
    found: Floats = centred[:, differs] / length[differs]
    return found
