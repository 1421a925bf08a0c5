"""Statements of the paper, and the comparisons that decide whether they hold."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from submax.simulation.compare import Finals, Side, holm, t_test
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
    """Whether a statement holds in the results, by tests of paired differences."""

    HOLDS = "holds"
    FAILS = "does not hold"
    DEPENDS = "depends on the smoothing"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


LEVEL = 0.05
"""The chance of a wrong decision within a statement, by Holm's correction of paired t-tests."""
DECISIVE_ERRORS = 2.0
"""A difference outside the statements is decided if it exceeds this many of its errors."""


class PairedComparison(NamedTuple):
    """The means of two policies over the same replicas, and whether the left one is lower.

    ``where`` describes the configuration; ``error`` is the standard error of the difference over
    ``replicas``. ``corrected`` is the p-value after Holm's correction within the statement; it is
    the p-value itself until then.
    """

    where: str
    left: str
    left_mean: float
    right: str
    right_mean: float
    error: float
    replicas: int
    corrected: float

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
        """Whether the left mean is lower, by a test at `LEVEL`."""
        if self.corrected >= LEVEL:
            return Verdict.UNDECIDED
        return Verdict.HOLDS if self.distance > 0 else Verdict.FAILS

    @classmethod
    def of(cls, where: str, left: Side, right: Side) -> "PairedComparison":
        """Compare replica by replica, which removes the variance that the worlds have in common."""
        values = left.values - right.values
        test = t_test(values, 1 - LEVEL)
        return cls(
            where,
            left.name,
            float(left.values.mean()),
            right.name,
            float(right.values.mean()),
            test.error,
            len(values),
            test.p_value,
        )


def corrected(comparisons: Iterable[PairedComparison]) -> list[PairedComparison]:
    """Return the comparisons of a statement with p-values corrected for their number."""
    found = list(comparisons)
    p_values = holm([one.corrected for one in found])
    return [one._replace(corrected=p) for one, p in zip(found, p_values, strict=True)]


def best_elsewhere(sides: Sequence[Side | None], *, highest: bool = False) -> Side | None:
    """Return the best policy of a family, chosen without the replicas on which it is compared.

    In every second replica it is the policy with the lowest (or ``highest``) mean over the other
    replicas, and the other way round: a policy that is chosen and compared on the same replicas
    looks too good. None unless all policies were run.
    """
    present = [side for side in sides if side is not None]
    if not present or len(present) < len(sides):
        return None
    if len(present) == 1 or len(present[0].values) < 2:
        return present[0]
    table = np.array([side.values for side in present])
    values, names = np.empty(table.shape[1]), []
    for half in (0, 1):
        means = table[:, 1 - half :: 2].mean(axis=1)
        chosen = int(means.argmax() if highest else means.argmin())
        values[half::2] = table[chosen, half::2]
        names.append(present[chosen].name)
    return Side(" | ".join(dict.fromkeys(names)), values)


Comparisons: TypeAlias = Callable[[Finals], Iterator["PairedComparison"]]
Methods: TypeAlias = list[str] | Callable[[dict[str, Any]], list[str]]
"""Policies by name, or a function of the labels of a configuration that returns them."""


def best_of(
    finals: Finals, policies: Iterable[str], labels: dict[str, Any], measure: str = "regret"
) -> Side | None:
    """Return the best of a family in a configuration by `best_elsewhere`."""
    sides = [finals.side(measure, policy, labels) for policy in policies]
    return best_elsewhere(sides, highest=measure == "reward")


def ranked(
    left: Methods,
    right: Methods,
    words: Callable[[dict[str, Any]], str],
    where: Mapping[str, Sequence[int]],
    measure: str = "regret",
) -> Comparisons:
    """Claim that the best of ``left`` has less regret, or reward, than the best of ``right``.

    They are compared in every configuration whose labels are among those of ``where``; ``words``
    describes it.
    """

    def comparisons(finals: Finals) -> Iterator[PairedComparison]:
        for labels in finals.configurations():
            if all(labels[key] in allowed for key, allowed in where.items()):
                names = [one(labels) if callable(one) else one for one in (left, right)]
                sides = [best_of(finals, one, labels, measure) for one in names]
                yield from compared(words(labels), *sides)

    return comparisons


def compared(where: str, left: Side | None, right: Side | None) -> Iterator[PairedComparison]:
    """One comparison, or none if a side is None because its cell was not run."""
    if left is not None and right is not None:
        yield PairedComparison.of(where, left, right)


Source: TypeAlias = Literal["paper", "submax"]


def share_of_random(name: str, found: Side | None, random: Side | None) -> Side | None:
    """The regret as a share of that of random choice, s = mean(x) / mean(r).

    The values are s + (x − s r) / mean(r), whose mean is s, and whose standard error is that of the
    ratio by the delta method: in a world in which one regret is large, the other is large too.
    """
    if found is None or random is None or random.values.mean() <= 0:
        return None
    mean = random.values.mean()
    share = found.values.mean() / mean
    return Side(name, share + (found.values - share * random.values) / mean)


class Statement(NamedTuple):
    """A sentence, and the comparisons in which it says that the left number is lower.

    ``source`` is who makes the statement: the paper, or we. ``quote`` is the sentence of the paper
    with its section; ``text`` is what is compared. The statement is about ``wanted``
    configurations; fewer comparisons mean that some cells were not run. ``by_smoothing`` has the
    verdict with each constant that counts are smoothed with, if the statement is about counting;
    the comparisons are those of the preset.
    """

    source: Source
    quote: str
    text: str
    wanted: int
    comparisons: list[PairedComparison]
    by_smoothing: Mapping[str, Verdict] = MappingProxyType({})

    @property
    def counts(self) -> Counter[Verdict]:
        """The number of comparisons with each verdict, those that were not run included."""
        counts = Counter(comparison.verdict for comparison in self.comparisons)
        missing = self.wanted - len(self.comparisons)
        return counts + Counter({Verdict.NOT_RUN: max(missing, 0)})

    @property
    def verdict(self) -> Verdict:
        """Holds in every comparison that was run, fails in at least one, or undecided.

        It depends on the smoothing if it holds with one constant and does not hold with another.
        """
        counts = self.counts
        if not self.comparisons:
            return Verdict.NOT_RUN
        if {Verdict.HOLDS, Verdict.FAILS} <= set(self.by_smoothing.values()):
            return Verdict.DEPENDS
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
        if len(parts) == 1 and counts[self.verdict]:
            return f"{parts[0]} of {self.wanted}"
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
            "replicas": one.replicas,
            "corrected_p_value": one.corrected,
            "comparison": str(one.verdict),
            "closest": one == statement.closest,
            "by_smoothing": "; ".join(f"{c}: {v}" for c, v in statement.by_smoothing.items()),
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

    def tested(self, finals: Finals, smoothed: Mapping[str, Finals] | None = None) -> Statement:
        """Return the statement with its comparisons on these results.

        ``smoothed`` are the same results with other constants that counts are smoothed with.
        """
        found = Statement(*self[:4], corrected(self.comparisons(finals)))
        verdicts = {}
        for constant, others in (smoothed or {}).items():
            comparisons = corrected(self.comparisons(others))
            if comparisons and comparisons != found.comparisons:
                verdicts[constant] = Statement(*self[:4], comparisons).verdict
        if verdicts:
            verdicts = {"preset": found.verdict, **verdicts}
        return found._replace(by_smoothing=verdicts)


Rows: TypeAlias = list[tuple[str, int, Comparisons]]
"""What is compared, in how many configurations, and how."""


def claims_of(paper: Mapping[str, Rows], ours: Rows) -> list[Claim]:
    """Return the claims: first the statements of the paper, by their quotes, then ours."""
    of_paper = [Claim("paper", quote, *row) for quote, rows in paper.items() for row in rows]
    return [*of_paper, *(Claim("submax", "", *row) for row in ours)]
