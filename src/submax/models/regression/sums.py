"""Running sums over the rows of several regressions."""

from typing import NamedTuple, Self

import numpy as np
import scipy

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.core.running.stored import stored


@stored("sums")
class Sums(NamedTuple):
    """Sums over rows with features φ, reward r and weight w, for K regressions.

    ``gram [K, F, F]`` is Σ w φ φᵀ and ``moment [K, F]`` is Σ w (r − offset) φ, both over the rows
    of each regression; ``weight``, ``reward`` and ``square`` are Σ w, Σ w (r − offset) and
    Σ w (r − offset)² over all rows. The first feature must be the constant 1. The ``offset`` should
    be close to the rewards, so that small differences of large rewards keep their precision.
    """

    gram: Floats
    moment: Floats
    weight: float
    reward: float
    square: float
    offset: float

    @classmethod
    def empty(cls, regressions: int, features: int, offset: float) -> Self:
        """Return the sums over zero rows."""
        gram = np.zeros((regressions, features, features))
        return cls(gram, np.zeros((regressions, features)), 0.0, 0.0, 0.0, offset)

    def add(self, features: Floats, number: Integers, reward: Floats, weight: Floats) -> Self:
        """Return the sums with more rows.

        ``features`` are ``[n, F]``, and ``number [n]`` is the regression of each row.
        """
        if not len(reward):
            return self
        gram, moment = self.gram.copy(), self.moment.copy()
        relative = reward - self.offset
        order = np.argsort(number, kind="stable")
        numbers, first = np.unique(number[order], return_index=True)
        for one, rows in zip(numbers, np.split(order, first[1:]), strict=True):
            mine = features[rows]
            weighted = mine * weight[rows, None]
            # BLAS updates its own column-major matrix in place: the transpose, which is the same
            # symmetric matrix.
            scipy.linalg.blas.dgemm(
                1.0, weighted.T, mine.T, 1.0, gram[one].T, trans_b=True, overwrite_c=True
            )
            moment[one] += relative[rows] @ weighted
        return self._replace(
            gram=gram,
            moment=moment,
            weight=self.weight + float(weight.sum()),
            reward=self.reward + float(weight @ relative),
            square=self.square + float(weight @ relative**2),
        )

    def joined(self, other: Self) -> Self:
        """Return the sums over the rows of both, with the offset of this one."""
        moment, square = other.centred(self.offset)
        reward = other.reward - (self.offset - other.offset) * other.weight
        return self._replace(
            gram=self.gram + other.gram,
            moment=self.moment + moment,
            weight=self.weight + other.weight,
            reward=self.reward + reward,
            square=self.square + square,
        )

    def faded(self, factor: float) -> Self:
        """Return the sums with all weights multiplied by a factor."""
        return self._replace(
            gram=self.gram * factor,
            moment=self.moment * factor,
            weight=self.weight * factor,
            reward=self.reward * factor,
            square=self.square * factor,
        )

    def centred(self, centre: float) -> tuple[Floats, float]:
        """Return Σ w (r − centre) φ for each regression, and Σ w (r − centre)² over all rows."""
        shift = centre - self.offset
        square = self.square - 2 * shift * self.reward + shift**2 * self.weight
        return self.moment - shift * self.gram[:, :, 0], max(square, 0.0)

    @property
    def variance(self) -> float:
        """Variance of the rewards; 0 without rows, or if rounding errors can explain it."""
        if self.weight <= 0:
            return 0.0
        mean = self.reward / self.weight
        spread = self.square / self.weight - mean**2
        rounding = (ROUNDED_REWARD * self.offset) ** 2 + ROUNDED_SQUARE * mean**2
        return spread if spread > rounding else 0.0


def check_can_learn(feature_map: object, sums: object) -> None:
    """Raise an ``InputError`` if a belief has a map, but not the sums to learn further."""
    if feature_map is not None and sums is None:
        raise InputError(
            "this state was stored to decide, without the sums that further learning needs: fit a "
            "new state to all rows, or store the state for learning"
        )


ROUNDED_REWARD = 1e-14
"""Rounding error of a reward, relative to the offset: smaller deviations are not significant."""
ROUNDED_SQUARE = 1e-13
"""Rounding error of the sum of squares, relative to the squared distance of the mean from the
offset: a smaller variance is not significant."""
