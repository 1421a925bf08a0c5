"""The regression behind a model of the rewards."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from submax.core.arrays import Floats

PENALTY, CONSTANT_PENALTY = 3.0, 1.0
"""Of squared slopes and constants: as if so many rows had shown nothing but the mean."""
MOST_UNKNOWNS = 1500
"""With more unknowns the slopes are shared by all choices."""
MOST_NUMBERS = 1 << 25
"""In the normal equations of arms that have slopes of their own."""


@dataclass(frozen=True)
class Sums:
    """Normal equations of B regressions: ``gram [B, P, P]``, and the ``moment [B, P]`` of rewards.

    ``ones [B, P]`` is what the moment would be if all rewards were 1: with it they can be taken as
    differences from a mean that is known only at the end.
    """

    gram: Floats
    moment: Floats
    ones: Floats

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(self.gram + other.gram, self.moment + other.moment, self.ones + other.ones)


class RidgeDesign(NamedTuple):
    """Slots with ``sizes`` choices, ``width`` features (1, x), ``powers`` of real-valued parts.

    Arms are regressions of their own; the choices of several slots are one, in which they add up.
    """

    sizes: tuple[int, ...]
    width: int
    powers: int

    @property
    def separate(self) -> bool:
        """Whether every choice has a regression of its own."""
        few = sum(self.sizes) * self.width**2 <= MOST_NUMBERS
        return len(self.sizes) == 1 and self.powers == 0 and few

    @property
    def interacts(self) -> bool:
        """Whether every choice has slopes of its own."""
        return self.separate or 0 < sum(self.sizes) * self.width <= MOST_UNKNOWNS

    def nothing(self) -> Sums:
        """The sums of no rows."""
        if self.separate:
            count, unknowns = self.sizes[0], self.width
        else:
            count, unknowns = 1, len(self._penalty())
        nothing = np.zeros((count, unknowns))
        return Sums(np.zeros((count, unknowns, unknowns)), nothing, nothing.copy())

    def sums(self, features: Floats, action: NDArray[Any], powers: Floats, reward: Floats) -> Sums:
        """Those of some rows."""
        if self.separate:
            return self._by_arm(features, action[:, 0].astype(np.int64), reward)
        matrix = self._matrix(features, action, powers)
        gram = (matrix.T @ matrix).toarray()
        return Sums(gram[None], (matrix.T @ reward)[None], matrix.sum(axis=0)[None])

    def solved(self, sums: Sums, mean: float) -> tuple[list[Floats], Floats, Floats]:
        """Coefficients of the slots ``[choices, 1 + D]``, shared ones ``[1 + D]``, and powers.

        They are those of rewards as differences from a ``mean``.
        """
        gram = sums.gram + np.diag(self._penalty())
        moment = sums.moment - mean * sums.ones
        solution: Floats = np.linalg.solve(gram, moment[..., None])[..., 0]  # type: ignore[assignment]  # of doubles
        none = np.zeros(self.width)
        if self.separate:
            return [solution], none, np.zeros(0)
        each, theta, first = self.width if self.interacts else 1, [], 0
        for size in self.sizes:
            block = solution[0, first : first + size * each].reshape(size, each)
            theta.append(np.pad(block, ((0, 0), (0, self.width - each))))
            first += size * each
        end = len(solution[0]) - self.powers
        return theta, none if self.interacts else solution[0, first:end], solution[0, end:]

    def _by_arm(self, features: Floats, arm: NDArray[Any], reward: Floats) -> Sums:
        sums = self.nothing()
        order = np.argsort(arm, kind="stable")
        features, reward = features[order], reward[order]
        ends = np.cumsum(np.bincount(arm, minlength=self.sizes[0]))
        for number, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            rows = features[begin:end]
            sums.gram[number], sums.moment[number] = rows.T @ rows, rows.T @ reward[begin:end]
            sums.ones[number] = rows.sum(axis=0)
        return sums

    def _matrix(self, features: Floats, action: NDArray[Any], powers: Floats) -> Any:
        """The rows of the regression, ``[n, P]``, sparse."""
        each = features if self.interacts else features[:, :1]
        shared = powers if self.interacts else np.concatenate([features, powers], axis=1)
        columns, first = [], 0
        for size, chosen in zip(self.sizes, action.T, strict=False):
            begin = first + chosen.astype(np.int64) * each.shape[1]
            columns.append(begin[:, None] + np.arange(each.shape[1]))
            first += size * each.shape[1]
        beyond = np.arange(shared.shape[1]) + first
        columns.append(np.broadcast_to(beyond, shared.shape))
        column = np.concatenate(columns, axis=1)
        values = np.concatenate([*([each] * len(self.sizes)), shared], axis=1)
        start = np.arange(0, column.size + 1, column.shape[1])
        shape = (len(features), first + shared.shape[1])
        return sparse.csr_array((values.ravel(), column.ravel(), start), shape=shape)

    def _penalty(self) -> Floats:
        block = np.full(self.width, PENALTY)
        block[0] = CONSTANT_PENALTY
        if self.separate:
            return block
        if self.interacts:
            return np.concatenate([np.tile(block, sum(self.sizes)), np.ones(self.powers)])
        constants = np.full(sum(self.sizes), CONSTANT_PENALTY)
        return np.concatenate([constants, block, np.ones(self.powers)])
