"""Statements of the paper, and the comparisons that decide whether they hold."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from submax.core.numerics import standard_error
from submax.simulation.compare import Finals, Side
from submax.simulation.results import write_csv

ABSTRACT = (
    "Abstract: RCPs are slower to converge and have inferior expected rewards at convergence, "
    "compared with classic methods such as the upper confidence bound and Thompson sampling."
)
LARGE = (
    "Section 4.1: the performance of classic methods degrade when K increase, except TS with the "
    "prior equal to the ground truth beta used for initializing the environment."
)
BEST = (
    "Section 4.1: Overall, RCPs with the SubMax strategy yields the best policy across the 3 "
    "settings."
)
SPARSE = (
    "Section 4.1: For each prior, TS with the prior being the same one used to initialize the "
    "environment is also better than others and for Beta(1, 99), ε-greedy strategy show a faster "
    "convergence within 5000 observations."
)
DELAYED = "Section 4.1: It is only outperformed by TS with the largest reward delay."
SLOPE = (
    "Section 4.1: based on the trend (the slope of the accumulated regret curve), RCPs with the "
    "SubMax policy is likely to outperform TS beyond the 5000 observations."
)
OVERALL = (
    "Section 4.1: Overall, RCPs with the SubMax strategy is the most competitive method across all "
    "configurations and often converge faster than classic methods especially when the MAB "
    "settings are difficult."
)
WITHIN = (
    "Section 4.1: Within RCPs, the SubMax strategy outperforms the optimized strategy which again "
    "outperforms the optimistic strategy."
)
IMPROVED = (
    "Introduction: we demonstrate that the proposed technique can outperform the marginalized "
    "policy for RCPs in challenging MAB and contextual MAB settings, being competitive to "
    "classic methods."
)
SUPERIOR = (
    "Abstract: we demonstrate that the proposed technique improves RCPs and makes them competitive "
    "with classic methods, showing superior performance on challenging MABs with large action "
    "spaces and sparse reward signals."
)


class Verdict(StrEnum):
    """Whether a statement holds in the results, by differences and their standard errors."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


DECISIVE_ERRORS = 2.0
"""A difference is decided if it is more than this many of its standard errors."""


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


class Claim(NamedTuple):
    """A statement before it is tested.

    ``comparisons`` yields one comparison for every configuration whose cells were run; ``wanted``
    is how many there are if all were run. The other fields are those of `Statement`.
    """

    source: Source
    quote: str
    text: str
    wanted: int
    comparisons: Callable[[Finals], Iterable[PairedComparison]]

    def tested(self, finals: Finals) -> Statement:
        """Return the statement with its comparisons on these results."""
        return Statement(*self[:4], list(self.comparisons(finals)))
