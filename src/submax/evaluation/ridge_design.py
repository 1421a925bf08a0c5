"""The regression behind a model of the rewards."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from submax.core.arrays import Floats

PENALTY, CONSTANT_PENALTY = 10.0, 1.0
"""Of squared slopes and constants: as if so many rows had shown nothing but the mean."""
MOST_UNKNOWNS = 1500
"""With more unknowns the slopes are shared by all choices."""


class Sums(NamedTuple):
    """Normal equations of B regressions: ``gram [B, P, P]`` and ``moment [B, P]``."""

    gram: Floats
    moment: Floats

    def __add__(self, other: "Sums") -> "Sums":  # type: ignore[override]  # sums, not tuples
        return Sums(self.gram + other.gram, self.moment + other.moment)


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
        return len(self.sizes) == 1 and self.powers == 0

    @property
    def interacts(self) -> bool:
        """Whether every choice has slopes of its own."""
        return self.separate or sum(self.sizes) * self.width <= MOST_UNKNOWNS

    def nothing(self) -> Sums:
        """The sums of no rows."""
        if self.separate:
            count, unknowns = self.sizes[0], self.width
        else:
            count, unknowns = 1, len(self._penalty())
        return Sums(np.zeros((count, unknowns, unknowns)), np.zeros((count, unknowns)))

    def sums(self, features: Floats, action: NDArray[Any], powers: Floats, target: Floats) -> Sums:
        """Those of some rows."""
        if self.separate:
            return self._by_arm(features, action[:, 0].astype(np.int64), target)
        matrix = self._matrix(features, action, powers)
        return Sums((matrix.T @ matrix).toarray()[None], (matrix.T @ target)[None])

    def solved(self, sums: Sums) -> tuple[list[Floats], Floats, Floats]:
        """Coefficients of the slots ``[choices, 1 + D]``, shared slopes ``[D]``, and powers."""
        gram = sums.gram + np.diag(self._penalty())
        solution: Floats = np.linalg.solve(gram, sums.moment[..., None])[..., 0]  # type: ignore[assignment]  # of doubles
        none = np.zeros(self.width - 1)
        if self.separate:
            return [solution], none, np.zeros(0)
        each, theta, first = self.width if self.interacts else 1, [], 0
        for size in self.sizes:
            block = solution[0, first : first + size * each].reshape(size, each)
            theta.append(np.pad(block, ((0, 0), (0, self.width - each))))
            first += size * each
        end = len(solution[0]) - self.powers
        return theta, none if self.interacts else solution[0, first:end], solution[0, end:]

    def _by_arm(self, features: Floats, arm: NDArray[Any], target: Floats) -> Sums:
        sums = self.nothing()
        order = np.argsort(arm, kind="stable")
        features, target = features[order], target[order]
        ends = np.cumsum(np.bincount(arm, minlength=self.sizes[0]))
        for number, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            rows = features[begin:end]
            sums.gram[number], sums.moment[number] = rows.T @ rows, rows.T @ target[begin:end]
        return sums

    def _matrix(self, features: Floats, action: NDArray[Any], powers: Floats) -> Any:
        """The rows of the regression, ``[n, P]``, sparse."""
        each = features if self.interacts else features[:, :1]
        shared = powers if self.interacts else np.concatenate([features[:, 1:], powers], axis=1)
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
        shared = np.full(self.width - 1, PENALTY)
        constants = np.full(sum(self.sizes), CONSTANT_PENALTY)
        return np.concatenate([constants, shared, np.ones(self.powers)])
