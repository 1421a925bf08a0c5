"""Two policies compared on the same worlds."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from submax.core.arrays import Floats
from submax.core.numerics.standard_error import standard_error
from submax.experiments.results import FINALS, RESULTS

LATE = 0.9
"""Where the last tenth of a run begins."""

Place: TypeAlias = tuple[tuple[tuple[str, Any], ...], str]


class Side(NamedTuple):
    """One side of a comparison: what it is, and its number in every replica."""

    name: str
    values: Floats


class Comparison(NamedTuple):
    """Whether the left number is the lower one; ``error`` is that of their difference."""

    where: str
    left: str
    left_mean: float
    right: str
    right_mean: float
    error: float

    @property
    def holds(self) -> bool:
        """Whether left is lower than right."""
        return self.left_mean < self.right_mean

    @classmethod
    def of(cls, where: str, left: Side, right: Side) -> "Comparison":
        """Compared replica by replica, so that what their worlds share drops out."""
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
    """Where each cell of a sweep ended, read from its files, by configuration and policy."""

    def __init__(
        self,
        regrets: dict[Place, Floats],
        rewards: dict[Place, Floats],
        slopes: dict[Place, float],
    ) -> None:
        self._finals, self._rewards, self._slopes = regrets, rewards, slopes

    @classmethod
    def read(cls, directory: Path) -> "Finals":
        """From the files that ``write_results`` wrote."""
        regrets: dict[Place, list[float]] = {}
        rewards: dict[Place, list[float]] = {}
        for row in pq.read_table(directory / FINALS).to_pylist():
            regrets.setdefault(_place(row), []).append(row["regret"])
            rewards.setdefault(_place(row), []).append(row["reward"])
        curves: dict[Place, list[tuple[int, float]]] = {}
        columns = pq.read_table(directory / RESULTS)
        last = pc.max(columns["step"]).as_py()
        late = columns.filter(pc.greater_equal(columns["step"], LATE * last))
        for row in late.to_pylist():
            point = (row["step"], row["regret_mean"])
            curves.setdefault(_place(row), []).append(point)
        return cls(
            {place: np.array(values) for place, values in regrets.items()},
            {place: np.array(values) for place, values in rewards.items()},
            {place: _slope(points) for place, points in curves.items()},
        )

    def configurations(self) -> list[dict[str, Any]]:
        """All configurations with at least one finished cell, in order."""
        return [dict(labels) for labels in dict.fromkeys(labels for labels, _ in self._finals)]

    def policies(self) -> list[str]:
        """The names of all policies, in order."""
        return list(dict.fromkeys(name for _, name in self._finals))

    def final(self, policy: str, **labels: Any) -> Side | None:
        """The final regret, or None where the cell was not run."""
        place = self._find(policy, labels)
        return None if place is None else Side(policy, self._finals[place])

    def reward(self, policy: str, **labels: Any) -> Side | None:
        """The final reward, or None where the cell was not run."""
        place = self._find(policy, labels)
        return None if place is None else Side(policy, self._rewards[place])

    def late(self, policy: str, **labels: Any) -> Side | None:
        """The regret added by each decision in the last tenth of the run."""
        place = self._find(policy, labels)
        return None if place is None else Side(policy, np.array([self._slopes[place]]))

    def best(self, policies: Iterable[str], **labels: Any) -> Side | None:
        """The policy with the lowest mean final regret; None unless all of them were run."""
        sides = [self.final(policy, **labels) for policy in policies]
        found = [side for side in sides if side is not None]
        if not found or len(found) < len(sides):
            return None
        return min(found, key=lambda side: float(side.values.mean()))

    def _find(self, policy: str, labels: dict[str, Any]) -> Place | None:
        for place in self._finals:
            if place[1] == policy and labels.items() <= dict(place[0]).items():
                return place
        return None


def against_best(
    finals: Finals, where: str, policy: str, rivals: Iterable[str], labels: dict[str, Any]
) -> Iterator[Comparison]:
    """The final regret of a policy against that of the best of its rivals."""
    left, right = finals.final(policy, **labels), finals.best(rivals, **labels)
    yield from compared(where, left, right)


def compared(where: str, left: Side | None, right: Side | None) -> Iterator[Comparison]:
    """One comparison, or none where a cell was not run."""
    if left is not None and right is not None:
        yield Comparison.of(where, left, right)


def _place(row: dict[str, Any]) -> Place:
    """The labels, which stand before the policy, and the policy itself."""
    names = list(row)
    labels = names[: names.index("policy")]
    return tuple((name, row[name]) for name in labels), row["policy"]


def _slope(points: list[tuple[int, float]]) -> float:
    (first, low), (last, high) = points[0], points[-1]
    return (high - low) / max(last - first, 1)
