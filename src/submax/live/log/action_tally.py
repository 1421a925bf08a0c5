"""Counts of decisions and sums of rewards for each choice."""

from collections import Counter
from collections.abc import Sequence
from typing import Self

import msgspec

from submax.schema.menu import EncodedAction


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

    def add(self, reward: float, weight: float) -> None:
        """Count a row that is learned from."""
        self.rows += 1
        self.reward += reward
        self.squares += reward * reward
        sums, square, weighted = self.weights, weight * weight, weight * reward
        self.weights = (
            sums[0] + weight,
            sums[1] + square,
            sums[2] + weighted,
            sums[3] + square * reward,
            sums[4] + weighted * weighted,
        )

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

    def add(self, value: float) -> None:
        """Count one decision."""
        self.lowest = min(self.lowest, value) if self.decisions else value
        self.highest = max(self.highest, value) if self.decisions else value
        self.decisions += 1
        self.total += value


class ActionTally(msgspec.Struct):
    """Tallies of the choices of each slot, by index, and of each real-valued part."""

    choices: list[list[ChoiceTally]]
    values: list[ValueTally]

    @classmethod
    def empty(cls, slots: int, intervals: int) -> Self:
        """The tally before any decision."""
        return cls([[] for _ in range(slots)], [ValueTally() for _ in range(intervals)])

    def decided(self, actions: Sequence[EncodedAction]) -> None:
        """Count decisions."""
        for slot in range(len(self.choices)):
            for index, count in Counter([int(action[slot]) for action in actions]).items():
                self.choice(slot, index).decisions += count
        for place, tally in enumerate(self.values, start=len(self.choices)):
            for action in actions:
                tally.add(float(action[place]))

    def learned(
        self,
        actions: Sequence[EncodedAction],
        rewards: Sequence[float],
        weights: Sequence[float],
    ) -> None:
        """Count rows that are learned from, in the order in which they matured."""
        for slot in range(len(self.choices)):
            for action, reward, weight in zip(actions, rewards, weights, strict=True):
                self.choice(slot, int(action[slot])).add(reward, weight)

    def choice(self, slot: int, index: int) -> ChoiceTally:
        """The tally of one choice; it is made if the choice was not counted before."""
        tallies = self.choices[slot]
        while len(tallies) <= index:
            tallies.append(ChoiceTally())
        return tallies[index]
