"""A bounded sample of the rows seen."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.running.stored import stored

PIECE = 4096
"""RegressionRows are turned into features this many at a time, so that the features need little memory."""


@stored("regression-rows")
class RegressionRows(NamedTuple):
    """Contexts ``[n, D]`` and, ``[n]`` each, the number of the action, the reward and the rest.

    ``log_prob`` is NaN if the logging policy did not say.
    """

    context: Floats
    number: Integers
    reward: Floats
    log_prob: Floats
    weight: Floats

    @classmethod
    def empty(cls, width: int) -> Self:
        """No rows."""
        nothing = np.zeros(0)
        return cls(np.zeros((0, width)), np.zeros(0, dtype=np.int64), nothing, nothing, nothing)

    @classmethod
    def of(cls, feedback: Feedback, replica: int, problem: Problem) -> Self:
        """The rows of one replica's feedback that are there."""
        there = feedback.weight[replica] > 0
        log_prob = np.full(np.count_nonzero(there), np.nan)
        if feedback.log_prob is not None:
            log_prob = feedback.log_prob[replica, there].astype(np.float64)
        return cls(
            feedback.context[replica, there].astype(np.float64),
            problem.space.index(feedback.action[replica, there]),
            feedback.reward[replica, there].astype(np.float64),
            log_prob,
            feedback.weight[replica, there].astype(np.float64),
        )

    def joined(self, other: Self) -> Self:
        """The rows of both."""
        return self._from(np.concatenate(pair) for pair in zip(self, other, strict=True))

    def taken(self, which: Integers | Booleans | slice) -> Self:
        """Some of the rows."""
        return self._from(column[which] for column in self)

    def faded(self, factor: float) -> Self:
        """The same rows with weights multiplied by a factor."""
        return self._replace(weight=self.weight * factor)

    def discounted(self, discount: float) -> Self:
        """The same rows, the weight of each multiplied by ``discount`` for every later row."""
        later = np.arange(len(self.reward) - 1, -1, -1)
        return self._replace(weight=self.weight * discount**later)

    def pieces(self) -> Iterator[Self]:
        """The rows in parts that are small enough to be turned into features."""
        for begin in range(0, len(self.reward), PIECE):
            yield self.taken(slice(begin, begin + PIECE))

    @classmethod
    def _from(cls, columns: Iterable[Any]) -> Self:
        return cls(*columns)


@stored("sampled-rows")
class SampledRows(NamedTuple):
    """Up to so many rows, each row seen with the same chance; ``seen`` counts all of them."""

    rows: RegressionRows
    seen: int

    def standing_for_all(self) -> RegressionRows:
        """The rows, each with the weight of as many as it stands for."""
        kept = len(self.rows.reward)
        if kept in (0, self.seen):
            return self.rows
        return self.rows.faded(self.seen / kept)

    def add(
        self, new: RegressionRows, most: int, discount: float, rng: np.random.Generator
    ) -> Self:
        """Take in new rows; the weight of a row is multiplied by ``discount`` for each later one.

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
            # If two rows come to one place, the later one stays.
            column[place[enters]] = coming[enters]
        return self._replace(rows=RegressionRows._make(columns), seen=seen)

    def none(self) -> Self:
        """The same without its rows."""
        return self._replace(rows=self.rows.taken(slice(0, 0)))
