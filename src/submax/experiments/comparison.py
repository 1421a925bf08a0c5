"""Two policies compared on the same worlds."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.experiments.results import Finished


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
        """Paired where the replicas share their worlds, else of two independent means."""
        if len(left.values) == len(right.values):
            error = _standard_error(left.values - right.values)
        else:
            error = float(np.hypot(_standard_error(left.values), _standard_error(right.values)))
        return cls(
            where,
            left.name,
            float(left.values.mean()),
            right.name,
            float(right.values.mean()),
            error,
        )


class Regrets:
    """Final regrets of a sweep, found by configuration and policy."""

    def __init__(self, finished: Sequence[Finished]) -> None:
        self._finished = {(_key(one.cell.labels), one.cell.policy_name): one for one in finished}

    def configurations(self) -> list[dict[str, Any]]:
        """All configurations with at least one finished cell, in order."""
        return [dict(key) for key in dict.fromkeys(key for key, _ in self._finished)]

    def final(self, policy: str, **labels: Any) -> Side | None:
        """The final regret, or None where the cell was not run."""
        found = self._find(policy, labels)
        return Side(policy, found.result.final_regret) if found else None

    def late(self, policy: str, **labels: Any) -> Side | None:
        """The regret added for each decision in the last tenth of the run."""
        found = self._find(policy, labels)
        if found is None:
            return None
        steps, mean = found.result.steps, found.result.regret.mean
        begin = int(np.searchsorted(steps, 0.9 * steps[-1]))
        slope = (mean[-1] - mean[begin]) / max(int(steps[-1] - steps[begin]), 1)
        return Side(policy, np.array([slope]))

    def best(self, policies: Iterable[str], **labels: Any) -> Side | None:
        """The policy with the lowest mean final regret; None unless all of them were run."""
        sides = [self.final(policy, **labels) for policy in policies]
        found = [side for side in sides if side is not None]
        if not found or len(found) < len(sides):
            return None
        return min(found, key=lambda side: float(side.values.mean()))

    def _find(self, policy: str, labels: dict[str, Any]) -> Finished | None:
        for (key, name), finished in self._finished.items():
            if name == policy and labels.items() <= dict(key).items():
                return finished
        return None


def _key(labels: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(labels.items())


def _standard_error(values: Floats) -> float:
    if len(values) < 2:
        return float("nan")
    return float(values.std(ddof=1) / np.sqrt(len(values)))
