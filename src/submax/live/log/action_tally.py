"""Counts of decisions and sums of rewards for each choice."""

from collections.abc import Sequence
from operator import add
from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats

FEW = 16
"""Fewer rows are faster added one by one than by numpy."""


class ChoiceTally(msgspec.Struct):
    """The counts of one choice: its ``decisions``, and the ``rows`` that were learned from.

    ``reward`` and ``squares`` are the sums of the rewards and of their squares. With the weight
    w = 1 / propensity of each row, ``weights`` has the sums of w, w², w r, w² r and w² r².
    """

    decisions: int = 0
    rows: int = 0
    reward: float = 0.0
    squares: float = 0.0
    weights: tuple[float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0)

    @property
    def mean(self) -> float | None:
        """The mean reward of the rows; None without rows."""
        return self.reward / self.rows if self.rows else None

    @property
    def standard_error(self) -> float | None:
        """The standard error of the mean; None with fewer than two rows."""
        if self.rows < 2:
            return None
        spread = max(self.squares - self.reward**2 / self.rows, 0.0)
        return float((spread / (self.rows - 1) / self.rows) ** 0.5)


class ValueTally(msgspec.Struct):
    """The number, sum and range of one real-valued part of the decisions, such as a price."""

    decisions: int = 0
    total: float = 0.0
    lowest: float = 0.0
    highest: float = 0.0

    def add(self, values: Floats) -> None:
        """Count decisions, of which there is at least one."""
        before = [self.lowest, self.highest] if self.decisions else values[:1]
        self.lowest = float(min(values.min(), *before))
        self.highest = float(max(values.max(), *before))
        self.decisions += len(values)
        # Added one after the other, so that the sum does not depend on how the log was read.
        self.total = float(np.cumsum(np.concatenate([[self.total], values]))[-1])


class ActionTally(msgspec.Struct):
    """Tallies of the choices of each slot, by index, and of each real-valued part."""

    choices: list[list[ChoiceTally]]
    values: list[ValueTally]

    @classmethod
    def empty(cls, slots: int, intervals: int) -> Self:
        """The tally before any decision."""
        return cls([[] for _ in range(slots)], [ValueTally() for _ in range(intervals)])

    def decided(self, actions: Floats) -> None:
        """Count decisions, whose encoded actions are ``[n, S]``."""
        for slot in range(len(self.choices)):
            if len(actions) < FEW:
                for index in actions[:, slot].tolist():
                    self.choice(slot, int(index)).decisions += 1
                continue
            counts = np.bincount(actions[:, slot].astype(np.int64))
            for index in np.flatnonzero(counts).tolist():
                self.choice(slot, index).decisions += int(counts[index])
        for place, tally in enumerate(self.values, start=len(self.choices)):
            tally.add(actions[:, place])

    def learned(self, actions: Floats, rewards: Floats, weights: Floats) -> None:
        """Count rows that are learned from, in the order in which they matured."""
        if len(rewards) < FEW:
            for row in zip(actions.tolist(), rewards.tolist(), weights.tolist(), strict=True):
                self._learned_one(*row)
            return
        weighted = weights * rewards
        squares_of = weights**2, weighted, weights * weighted, weighted**2
        for slot in range(len(self.choices)):
            indices = actions[:, slot].astype(np.int64)
            most = int(indices.max(initial=0)) + 1
            known = [self.choice(slot, index) for index in range(most)]
            rows = np.bincount(indices, minlength=most).tolist()
            reward = _summed([one.reward for one in known], indices, rewards)
            squares = _summed([one.squares for one in known], indices, rewards * rewards)
            sums = [
                _summed([one.weights[number] for one in known], indices, values)
                for number, values in enumerate((weights, *squares_of))
            ]
            for tally, *added in zip(known, rows, reward, squares, *sums, strict=True):
                tally.rows += added[0]
                tally.reward, tally.squares = added[1:3]
                tally.weights = (added[3], added[4], added[5], added[6], added[7])

    def _learned_one(self, action: Sequence[float], reward: float, weight: float) -> None:
        weighted = weight * reward
        values = weight, weight * weight, weighted, weight * weighted, weighted * weighted
        for slot in range(len(self.choices)):
            tally = self.choice(slot, int(action[slot]))
            tally.rows += 1
            tally.reward += reward
            tally.squares += reward * reward
            first, second, third, fourth, fifth = map(add, tally.weights, values)
            tally.weights = first, second, third, fourth, fifth

    def choice(self, slot: int, index: int) -> ChoiceTally:
        """The tally of one choice; it is made if the choice was not counted before."""
        tallies = self.choices[slot]
        while len(tallies) <= index:
            tallies.append(ChoiceTally())
        return tallies[index]


def _summed(sums: Sequence[float], indices: NDArray[np.int64], values: Floats) -> list[float]:
    """Return sums after values were added, in order, each to the sum with its index.

    The order of the additions is that of single rows, so that the sums are equal to the last bit.
    """
    total: list[float] = np.bincount(
        np.concatenate([np.arange(len(sums)), indices]), np.concatenate([sums, values])
    ).tolist()
    return total
