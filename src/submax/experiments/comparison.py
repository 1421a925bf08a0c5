"""Two policies compared on the same worlds."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from submax.core.arrays import Floats
from submax.core.standard_error import standard_error
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


class Regrets:
    """Regrets of a sweep, read from its result files and found by configuration and policy."""

    def __init__(self, finals: dict[Place, Floats], slopes: dict[Place, float]) -> None:
        self._finals, self._slopes = finals, slopes

    @classmethod
    def read(cls, directory: Path) -> "Regrets":
        """From the files that ``write_results`` wrote."""
        finals: dict[Place, list[float]] = {}
        for row in pq.read_table(directory / FINALS).to_pylist():
            finals.setdefault(_place(row), []).append(row["regret"])
        curves: dict[Place, list[tuple[int, float]]] = {}
        columns = pq.read_table(directory / RESULTS)
        last = pc.max(columns["step"]).as_py()
        late = columns.filter(pc.greater_equal(columns["step"], LATE * last))
        for row in late.to_pylist():
            point = (row["step"], row["regret_mean"])
            curves.setdefault(_place(row), []).append(point)
        return cls(
            {place: np.array(values) for place, values in finals.items()},
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


def _place(row: dict[str, Any]) -> Place:
    """The labels, which stand before the policy, and the policy itself."""
    names = list(row)
    labels = names[: names.index("policy")]
    return tuple((name, row[name]) for name in labels), row["policy"]


def _slope(points: list[tuple[int, float]]) -> float:
    (first, low), (last, high) = points[0], points[-1]
    return (high - low) / max(last - first, 1)
