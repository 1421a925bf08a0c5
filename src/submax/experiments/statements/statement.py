"""A statement and the comparisons that decide whether it holds."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from submax.experiments.comparing.paired_comparison import PairedComparison
from submax.experiments.statements.verdict import Verdict
from submax.experiments.storing.directory import write_csv

Source: TypeAlias = Literal["paper", "submax"]


class Statement(NamedTuple):
    """A sentence, and the comparisons in which it says that the left number is lower.

    ``source`` is who makes the statement: the paper, or we. ``quote`` is the sentence of the paper
    with its section; ``text`` is what is compared. The statement is about ``wanted``
    configurations; fewer comparisons mean that some cells were not run.
    """

    source: Source
    quote: str
    text: str
    wanted: int
    comparisons: list[PairedComparison]

    @property
    def counts(self) -> Counter[Verdict]:
        """The number of comparisons with each verdict, those that were not run included."""
        counts = Counter(comparison.verdict for comparison in self.comparisons)
        missing = self.wanted - len(self.comparisons)
        return counts + Counter({Verdict.NOT_RUN: max(missing, 0)})

    @property
    def verdict(self) -> Verdict:
        """Holds in every comparison that was run, fails in at least one, or undecided."""
        counts = self.counts
        if not self.comparisons:
            return Verdict.NOT_RUN
        if counts[Verdict.FAILS]:
            return Verdict.FAILS
        return Verdict.UNDECIDED if counts[Verdict.UNDECIDED] else Verdict.HOLDS

    @property
    def summary(self) -> str:
        """The verdict with its counts, such as "undecided: holds in 24, undecided in 3 of 27"."""
        counts = self.counts
        parts = [f"{verdict} in {counts[verdict]}" for verdict in Verdict if counts[verdict]]
        if self.wanted == 1 or not self.comparisons:
            return str(self.verdict)
        return f"{self.verdict}: {', '.join(parts)} of {self.wanted}"

    @property
    def closest(self) -> PairedComparison:
        """The comparison that supports the sentence least, in standard errors."""
        return min(self.comparisons, key=lambda one: one.distance)


def write_statements(directory: Path, statements: Sequence[Statement]) -> None:
    """Write every comparison with both its means as statements.csv."""
    rows = [
        {
            "source": statement.source,
            "quote": statement.quote,
            "statement": statement.text,
            "verdict": str(statement.verdict),
            "summary": statement.summary,
            "where": one.where,
            "left": one.left,
            "left_mean": one.left_mean,
            "right": one.right,
            "right_mean": one.right_mean,
            "standard_error_of_difference": one.error,
            "comparison": str(one.verdict),
            "closest": one == statement.closest,
        }
        for statement in statements
        for one in statement.comparisons
    ]
    if rows:
        write_csv(directory / "statements.csv", rows)
