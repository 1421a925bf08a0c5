"""Comparisons of two policies that were simulated in the same worlds."""

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from submax.core.arrays import Floats
from submax.core.numerics.standard_error import standard_error
from submax.experiments.statements.verdict import Verdict
from submax.experiments.storing.results import FINAL_TABLE
from submax.simulation.running.result_table import ResultTable

DECISIVE_ERRORS = 2.0
"""A difference is decided if it is more than this many of its standard errors."""

CellLabels: TypeAlias = tuple[tuple[tuple[str, Any], ...], str]
"""What identifies a cell: the labels of its configuration, and the name of its policy."""


class Side(NamedTuple):
    """One side of a comparison: the name of a policy, and its value in every replica."""

    name: str
    values: Floats


class PairedComparison(NamedTuple):
    """The means of two policies over the same replicas, and whether the left one is lower.

    ``where`` describes the configuration; ``error`` is the standard error of the difference.
    """

    where: str
    left: str
    left_mean: float
    right: str
    right_mean: float
    error: float

    @property
    def distance(self) -> float:
        """By how many standard errors the left mean is lower; 0 if there is no error to go by."""
        difference = self.right_mean - self.left_mean
        if math.isnan(self.error):
            return 0.0
        if self.error == 0:
            return math.copysign(math.inf, difference) if difference else 0.0
        return difference / self.error

    @property
    def verdict(self) -> Verdict:
        """Whether the left mean is lower, by more than two standard errors of the difference."""
        if abs(self.distance) <= DECISIVE_ERRORS:
            return Verdict.UNDECIDED
        return Verdict.HOLDS if self.distance > 0 else Verdict.FAILS

    @classmethod
    def of(cls, where: str, left: Side, right: Side) -> "PairedComparison":
        """Compare replica by replica, which removes the variance that the worlds have in common."""
        error = standard_error(left.values - right.values)
        return cls(
            where,
            left.name,
            float(left.values.mean()),
            right.name,
            float(right.values.mean()),
            error,
        )


class Finals:
    """The final regret and reward of every replica, by configuration and policy.

    ``slopes`` are the mean regrets per decision in the last tenth of a run.
    """

    def __init__(
        self,
        regrets: dict[CellLabels, Floats],
        rewards: dict[CellLabels, Floats],
        slopes: dict[CellLabels, Floats],
    ) -> None:
        self._regrets, self._rewards, self._slopes = regrets, rewards, slopes

    @classmethod
    def read(cls, directory: Path) -> "Finals":
        """Read the table that ``write_results`` wrote."""
        table = ResultTable.read(directory, FINAL_TABLE)
        labels = table.labels
        found: tuple[dict[CellLabels, Floats], ...] = ({}, {}, {})
        for (*values, policy), rows in table.groups(*labels, "policy").items():
            configuration = tuple(zip(labels, values, strict=True))
            for column, name in zip(found, ("regret", "reward", "late_slope"), strict=True):
                column[configuration, policy] = rows[name]
        return cls(*found)

    def configurations(self) -> list[dict[str, Any]]:
        """All configurations with at least one finished cell, in order."""
        return [dict(labels) for labels in dict.fromkeys(labels for labels, _ in self._regrets)]

    def policies(self) -> list[str]:
        """The names of all policies, in order."""
        return list(dict.fromkeys(name for _, name in self._regrets))

    def final(self, policy: str, **labels: Any) -> Side | None:
        """The final regret of a policy; None if its cell was not run."""
        cell = self._find(policy, labels)
        return None if cell is None else Side(policy, self._regrets[cell])

    def reward(self, policy: str, **labels: Any) -> Side | None:
        """The final reward of a policy; None if its cell was not run."""
        cell = self._find(policy, labels)
        return None if cell is None else Side(policy, self._rewards[cell])

    def late(self, policy: str, **labels: Any) -> Side | None:
        """The mean regret per decision in the last tenth of the run; None if it was not run."""
        cell = self._find(policy, labels)
        return None if cell is None else Side(policy, self._slopes[cell])

    def best(self, policies: Iterable[str], **labels: Any) -> Side | None:
        """The policy with the lowest mean final regret; None unless all of them were run."""
        sides = [self.final(policy, **labels) for policy in policies]
        found = [side for side in sides if side is not None]
        if not found or len(found) < len(sides):
            return None
        return min(found, key=lambda side: float(side.values.mean()))

    def _find(self, policy: str, labels: dict[str, Any]) -> CellLabels | None:
        for cell in self._regrets:
            if cell[1] == policy and labels.items() <= dict(cell[0]).items():
                return cell
        return None


def less_regret(
    finals: Finals, lower: str, higher: str, words: Callable[[dict[str, Any]], str]
) -> Iterator[PairedComparison]:
    """Compare the final regret of two policies in every configuration that ``words`` describes."""
    for labels in finals.configurations():
        left, right = finals.final(lower, **labels), finals.final(higher, **labels)
        yield from compared(words(labels), left, right)


def against_best(
    finals: Finals, where: str, policy: str, rivals: Iterable[str], labels: dict[str, Any]
) -> Iterator[PairedComparison]:
    """Compare the final regret of a policy with that of the best of its rivals."""
    left, right = finals.final(policy, **labels), finals.best(rivals, **labels)
    yield from compared(where, left, right)


def compared(where: str, left: Side | None, right: Side | None) -> Iterator[PairedComparison]:
    """One comparison, or none if a side is None because its cell was not run."""
    if left is not None and right is not None:
        yield PairedComparison.of(where, left, right)
