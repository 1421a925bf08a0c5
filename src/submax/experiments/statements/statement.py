"""A statement of the paper and the comparisons that decide whether it holds."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from submax.experiments.directory import write_csv
from submax.experiments.paired_comparison import PairedComparison


class Statement(NamedTuple):
    """A sentence and the comparisons that decide it; no comparisons if cells were not run."""

    text: str
    comparisons: list[PairedComparison]

    @property
    def held(self) -> int:
        """The number of comparisons in which the left mean is lower, as the sentence says."""
        return sum(comparison.holds for comparison in self.comparisons)

    @property
    def closest(self) -> PairedComparison:
        """The comparison that supports the sentence least."""
        tiny = 1e-300
        return max(
            self.comparisons,
            key=lambda one: (one.left_mean - one.right_mean) / max(abs(one.right_mean), tiny),
        )


def write_statements(directory: Path, statements: Sequence[Statement]) -> None:
    """Write every comparison with both its means as statements.csv."""
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
