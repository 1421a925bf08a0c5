"""Ridge regressions of the reward on the context, one for every joint action."""

from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.errors import InvalidValue
from submax.core.feedback import Feedback
from submax.core.problem import Problem

LARGEST = 2**28
"""The most numbers that the precisions of all replicas and actions may hold."""
BLOCK = 2**21
"""A decision works on at most so many scores or products at once."""


class LinearStatistics(NamedTuple):
    """A_a = ridge · I + Σ x xᵀ and b_a = Σ r x over the rows of action a, with x = (1, context).

    ``precision`` A and ``covariance`` A⁻¹ are ``[R, K, d, d]``, ``response`` b and
    ``coefficients`` θ̂ = A⁻¹ b are ``[R, K, d]``, with d = 1 + D. A weight counts a row so often.
    """

    problem: Problem
    precision: Floats
    response: Floats
    covariance: Floats
    coefficients: Floats

    @classmethod
    def empty(cls, problem: Problem, replicas: int, ridge: float) -> Self:
        """No feedback: the ridge alone."""
        problem.space.check_listable("a linear policy")
        width = 1 + problem.context_width
        shape = (replicas, problem.space.size, width)
        numbers = replicas * problem.space.size * width**2
        if numbers > LARGEST:
            raise InvalidValue(
                f"a linear policy keeps (1 + context_width)² numbers for every replica and joint "
                f"action, at most {LARGEST}, and here these are {numbers}: take fewer replicas"
            )
        precision = np.zeros((*shape, width))
        precision[...] = ridge * np.eye(width)
        covariance = np.zeros((*shape, width))
        covariance[...] = np.eye(width) / ridge
        return cls(problem, precision, np.zeros(shape), covariance, np.zeros(shape))

    def add(self, feedback: Feedback) -> Self:
        """Count what came back, and solve again for the actions it was about."""
        feedback.check(self.problem)
        there = feedback.weight > 0
        if not there.any():
            return self
        size, width = self.response.shape[1:]
        replica = np.nonzero(there)[0]
        cell = replica * size + self.problem.space.index(feedback.action[there])
        order = np.argsort(cell, kind="stable")
        features = _features(feedback.context[there])[order]
        weighted = feedback.weight[there][order, None] * features
        cells, first = np.unique(cell[order], return_index=True)
        earned = np.add.reduceat(weighted * feedback.reward[there][order, None], first)
        state = self._replace(
            precision=self.precision.copy(),
            response=self.response.copy(),
            covariance=self.covariance.copy(),
            coefficients=self.coefficients.copy(),
        )
        precision = state.precision.reshape(-1, width, width)
        for column in range(width):
            products = weighted * features[:, column, None]
            precision[cells, column] += np.add.reduceat(products, first)
        state.response.reshape(-1, width)[cells] += earned
        state._solve(cells)
        return state

    def posterior(self, context: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
        """Blocks of rows with x·θ̂_a and √(xᵀ A_a⁻¹ x), both ``[R, n, K]``, for each row.

        Without context all rows are alike: there is one block, ``[R, 1, K]``.
        """
        replicas, rows, width = context.shape
        size = self.problem.space.size
        if width == 0:
            yield slice(0, rows), *self._moments(np.zeros((replicas, 1, 0)))
            return
        step = max(1, BLOCK // (replicas * max(size, (1 + width) ** 2)))
        for start in range(0, max(rows, 1), step):
            block = slice(start, min(start + step, rows))
            yield block, *self._moments(context[:, block])

    def _moments(self, context: Floats) -> tuple[Floats, Floats]:
        features = _features(context)
        replicas, rows, width = features.shape
        mean: Floats = features @ self.coefficients.swapaxes(1, 2)
        products = features[..., :, None] * features[..., None, :]
        products = products.reshape(replicas, rows, width * width)
        flat = self.covariance.reshape(replicas, -1, width * width)
        variance = products @ flat.swapaxes(1, 2)
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def _solve(self, cells: Integers) -> None:
        """Invert the precisions of some replicas' actions, in place."""
        width = self.response.shape[-1]
        precision = self.precision.reshape(-1, width, width)[cells]
        covariance = np.linalg.inv(precision)
        response = self.response.reshape(-1, width)[cells]
        self.covariance.reshape(-1, width, width)[cells] = covariance
        found = (covariance @ response[..., None])[..., 0]
        self.coefficients.reshape(-1, width)[cells] = found


def _features(context: Floats) -> Floats:
    """A one before every context."""
    return np.concatenate([np.ones((*context.shape[:-1], 1)), context], axis=-1)
