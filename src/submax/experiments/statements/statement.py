"""A sentence of the paper and the numbers that decide it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from submax.experiments.comparison import Comparison
from submax.experiments.directory import write_csv


class Statement(NamedTuple):
    """A sentence and the comparisons that decide it; none where cells are missing."""

    text: str
    comparisons: list[Comparison]

    @property
    def held(self) -> int:
        """In how many comparisons the left number is lower, as the sentence says."""
        return sum(comparison.holds for comparison in self.comparisons)

    @property
    def closest(self) -> Comparison:
        """The comparison that speaks least for the sentence."""
        tiny = 1e-300
        return max(
            self.comparisons,
            key=lambda one: (one.left_mean - one.right_mean) / max(abs(one.right_mean), tiny),
        )


def write_statements(directory: Path, statements: Sequence[Statement]) -> None:
    """Write every comparison with both its numbers."""
    rows = [
        {
            "statement": statement.text,
            "where": one.where,
            "left": one.left,
            "left_mean": one.left_mean,
            "right": one.right,
            "right_mean": one.right_mean,
            "standard_error_of_difference": one.error,
            "holds": one.holds,
            "closest": one == statement.closest,
        }
        for statement in statements
        for one in statement.comparisons
    ]
    if rows:
        write_csv(directory / "statements.csv", rows)
