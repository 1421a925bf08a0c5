"""Rows for regressions, and a random sample of them of bounded size."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.running.stored import stored

PIECE = 4096
"""Number of rows whose features are computed together, which bounds the memory for features."""


@stored("regression-rows")
class RegressionRows(NamedTuple):
    """Rows with a context ``[n, D]``, the number of the regression they belong to, and a reward.

    There is one regression per action, so ``number [n]`` is the index of the action. ``log_prob
    [n]`` is the log-probability of the action, NaN if it was not logged.
    """

    context: Floats
    number: Integers
    reward: Floats
    log_prob: Floats
    weight: Floats

    @classmethod
    def empty(cls, width: int) -> Self:
        """Return zero rows."""
        nothing = np.zeros(0)
        return cls(np.zeros((0, width)), np.zeros(0, dtype=np.int64), nothing, nothing, nothing)

    @classmethod
    def of(cls, feedback: Feedback, replica: int, problem: Problem) -> Self:
        """Return the rows of one replica's feedback with positive weight."""
        present = feedback.weight[replica] > 0
        # A slice is faster than a selection.
        there: Booleans | slice = slice(None) if present.all() else present
        weight = feedback.weight[replica, there].astype(np.float64)
        log_prob = np.full(len(weight), np.nan)
        if feedback.log_prob is not None:
            log_prob = feedback.log_prob[replica, there].astype(np.float64)
        return cls(
            feedback.context[replica, there].astype(np.float64),
            problem.space.index(feedback.action[replica, there]),
            feedback.reward[replica, there].astype(np.float64),
            log_prob,
            weight,
        )

    def joined(self, other: Self) -> Self:
        """Return these rows followed by the other ones."""
        return self._from(np.concatenate(pair) for pair in zip(self, other, strict=True))

    def taken(self, which: Integers | Booleans | slice) -> Self:
        """Return a selection of the rows."""
        return self._from(column[which] for column in self)

    def faded(self, factor: float) -> Self:
        """Return the rows with all weights multiplied by a factor."""
        return self._replace(weight=self.weight * factor)

    def discounted(self, discount: float) -> Self:
        """Return the rows, with the weight of each multiplied by ``discount`` per later row."""
        later = np.arange(len(self.reward) - 1, -1, -1)
        return self._replace(weight=self.weight * discount**later)

    def pieces(self) -> Iterator[Self]:
        """Yield the rows in pieces of bounded size."""
        for begin in range(0, len(self.reward), PIECE):
            yield self.taken(slice(begin, begin + PIECE))

    @classmethod
    def _from(cls, columns: Iterable[Any]) -> Self:
        return cls(*columns)


@stored("sampled-rows")
class SampledRows(NamedTuple):
    """A uniform random sample of all rows so far; ``seen`` is the number of all rows."""

    rows: RegressionRows
    seen: int

    def standing_for_all(self) -> RegressionRows:
        """Return the sample with weights scaled up, so that it weighs as much as all rows."""
        size = len(self.rows.reward)
        if size in (0, self.seen):
            return self.rows
        return self.rows.faded(self.seen / size)

    def add(
        self, new: RegressionRows, most: int, discount: float, rng: np.random.Generator
    ) -> Self:
        """Return the sample after new rows, with at most ``most`` rows.

        The weight of a row is multiplied by ``discount`` for each later row.

        Reference: Vitter (1985), Random sampling with a reservoir.
        """
        count = len(new.reward)
        old = self.rows.faded(discount**count)
        new = new.discounted(discount)
        seen = self.seen + count
        room = min(max(most - len(old.reward), 0), count)
        kept, rest = old.joined(new.taken(slice(0, room))), new.taken(slice(room, None))
        if not len(rest.reward):
            return self._replace(rows=kept, seen=seen)
        place = rng.integers(np.arange(self.seen + room + 1, seen + 1))
        enters = place < most
        columns: list[Any] = [column.copy() for column in kept]
        for column, coming in zip(columns, rest, strict=True):
            # If two new rows get the same index, the later one is kept.
            column[place[enters]] = coming[enters]
        return self._replace(rows=RegressionRows._make(columns), seen=seen)

    def none(self) -> Self:
        """Return the sample without its rows; ``seen`` stays."""
        return self._replace(rows=self.rows.taken(slice(0, 0)))
