"""How the coefficients of several regressions are related before any data."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.running.stored import stored

OWN, COMMON, ALIKE = 0, 1, 2
"""The kinds of directions between regressions: those of each regression alone, that in which all
move together, and those in which regressions with similar actions move together."""
KINDS = 3
DESCRIBED_SHARE = 0.1
"""The variance of a described regression's own coefficients where fitting starts, as a share of the
others."""
SMALLEST = 1e-8
"""Directions whose length is below this share of the longest one add nothing, and numbers that
differ by less than this share of the largest one are equal."""


class PriorStructure(NamedTuple):
    """Groups of features, and directions between regressions, that share a prior variance.

    ``groups [F]`` is the number of the group of each feature. The columns of ``directions [K, q]``
    are orthonormal, and ``kinds [q]`` says of which kind each is; whatever is orthogonal to them is
    of the kind ``OWN``. The prior variance of a coefficient's component is that of its feature's
    group and its direction's kind.
    """

    groups: Integers
    directions: Floats
    kinds: Integers

    @classmethod
    def independent(cls, groups: Integers, regressions: int) -> Self:
        """Regressions that share nothing but the prior variances."""
        return cls(groups, np.zeros((regressions, 0)), np.zeros(0, dtype=np.int64))

    @classmethod
    def sharing(cls, groups: Integers, regressions: int, described: Floats | None = None) -> Self:
        """Regressions that have something in common.

        ``described [K, q]`` are numbers that describe the action of each regression: those with
        similar numbers are expected to have similar coefficients.
        """
        if regressions == 1:
            return cls.independent(groups, 1)
        common = np.full((regressions, 1), regressions**-0.5)
        columns = np.zeros((regressions, 0)) if described is None else _different(described)
        left, length, _ = np.linalg.svd(columns, full_matrices=False)
        basis = left[:, length > SMALLEST * length.max(initial=0.0)]
        kinds = np.array([COMMON] + [ALIKE] * basis.shape[1])
        return cls(groups, np.concatenate([common, basis], axis=1), kinds)

    @property
    def regressions(self) -> int:
        """How many regressions there are (K)."""
        return len(self.directions)

    def dimensions(self, group: int) -> Floats:
        """How many components of coefficients each kind has in a group of features."""
        of_kind = np.bincount(self.kinds, minlength=KINDS)
        of_kind[OWN] = self.regressions - len(self.kinds)
        return of_kind * np.float64(np.count_nonzero(self.groups == group))


@stored("prior")
class Prior(NamedTuple):
    """The ``noise`` variance of a reward, and the ``variance [groups, kinds]`` of coefficients."""

    noise: float
    variance: Floats

    @classmethod
    def vague(cls, groups: int, variance: float, described: bool = False) -> Self:
        """Where fitting starts, for rewards with this ``variance``.

        If regressions are ``described``, fitting starts with little variance of their own, since
        there are two ways to explain the rows: with much, it may end where each regression stands
        alone, although what describes them explains as much.
        """
        variances = np.full((groups, KINDS), variance / 2)
        if described:
            variances[:, OWN] *= DESCRIBED_SHARE
        return cls(variance / 2, variances)


def _different(described: Floats) -> Floats:
    """The columns that differ between regressions, counted from their means, of length 1 each."""
    centred = described - described.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    differs = length > SMALLEST * np.abs(described).max(axis=0, initial=0.0)
    found: Floats = centred[:, differs] / length[differs]
    return found
