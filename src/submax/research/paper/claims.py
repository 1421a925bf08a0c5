"""The paper's claims, which are in claims.toml, tested on the results of a sweep."""

import math
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from submax.core.numerics import standard_error
from submax.simulation.compare import Finals, Side, holm, t_test
from submax.simulation.results import FINAL_TABLE, ResultTable, write_csv

LEVEL = 0.05
"""The chance of a wrong decision within a statement, by Holm's correction of paired t-tests."""


@cache
def _file() -> dict[str, Any]:
    with Path(__file__).with_name("claims.toml").open("rb") as file:
        return tomllib.load(file)


def family(*names: str) -> list[str]:
    """Return the policies of these names, of which those that begin with $ are families.

    >>> family("random", "$thompson")
    ['random', 'thompson-1-1', 'thompson-1-9', 'thompson-1-99']
    """
    found = list[str]()
    for name in names:
        more = family(*_file()["families"][name[1:]]) if name.startswith("$") else [name]
        found.extend(more)
    return found


def paper_rewards() -> dict[str, float]:
    """The expected rewards in the one environment of the paper's illustration, by policy."""
    rewards: dict[str, float] = _file()["section 3.3"]["rewards"]
    return rewards


# Statements -----------------------------------------------------------------------------


class Verdict(StrEnum):
    """Whether a statement holds in the results, by tests of paired differences."""

    HOLDS = "holds"
    FAILS = "does not hold"
    DEPENDS = "depends on the smoothing"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"


def _in_errors(difference: float, error: float) -> float:
    """A difference in standard errors; 0 if nothing is known about the error."""
    if math.isnan(error) or difference == 0:
        return 0.0
    return difference / error if error else math.copysign(math.inf, difference)


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
        return _in_errors(self.right_mean - self.left_mean, self.error)

    @property
    def verdict(self) -> Verdict:
        """Whether the left mean is lower, by a test at `LEVEL`."""
        if self.corrected >= LEVEL:
            return Verdict.UNDECIDED
        return Verdict.HOLDS if self.distance > 0 else Verdict.FAILS

    @classmethod
    def of(cls, where: str, left: Side, right: Side) -> "PairedComparison":
        """Compare replica by replica, which removes the variance that the worlds have in common."""
        test = t_test(left.values - right.values, 1 - LEVEL)
        sides = [(one.name, float(one.values.mean())) for one in (left, right)]
        return cls(where, *sides[0], *sides[1], test.error, len(left.values), test.p_value)


class Statement(NamedTuple):
    """A sentence, and the comparisons in which it says that the left number is lower.

    ``source`` is who makes the statement: the paper, or we. ``quote`` is the sentence of the paper
    with its section; ``text`` is what is compared. The statement is about ``wanted``
    configurations; fewer comparisons mean that some cells were not run. ``by_smoothing`` has the
    verdict with each constant that counts are smoothed with, if the statement is about counting;
    the comparisons are those of the preset.
    """

    source: Literal["paper", "submax"]
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


def statements_of(section: str, finals: Finals) -> list[Statement]:
    """The statements of a section with their comparisons; none if the section is empty."""
    others: dict[str, Finals] = {}
    if section == "section 4.1":
        others = {f"c = {one}": Smoothed(finals, [one]) for one in CONSTANTS}
        others["best c in hindsight"] = Smoothed(finals, ["", *CONSTANTS])
    claims = _file()[section]["claims"] if section else ()
    return [_tested(_file()[section], claim, finals, others) for claim in claims]


def illustration_statements(directory: Path) -> list[Statement]:
    """Return the statements of section 3.3; each comparison is over environments."""
    rows = ResultTable.read(directory, FINAL_TABLE).by_policy()
    return statements_of("section 3.3", Finals(({}, name, found) for name, found in rows.items()))


def write_statements(directory: Path, statements: Sequence[Statement]) -> None:
    """Write every comparison with both its means as statements.csv."""
    columns = {"error": "standard_error_of_difference", "corrected": "corrected_p_value"}
    rows = [
        {
            "source": statement.source,
            "quote": statement.quote,
            "statement": statement.text,
            "verdict": str(statement.verdict),
            "summary": statement.summary,
            **{columns.get(name, name): getattr(one, name) for name in one._fields},
            "comparison": str(one.verdict),
            "closest": one == statement.closest,
            "by_smoothing": "; ".join(f"{c}: {v}" for c, v in statement.by_smoothing.items()),
        }
        for statement in statements
        for one in statement.comparisons
    ]
    if rows:
        write_csv(directory / "statements.csv", rows)


def _tested(
    section: dict[str, Any], claim: dict[str, Any], finals: Finals, others: Mapping[str, Finals]
) -> Statement:
    """Return a claim with its comparisons; ``others`` are results with other smoothing."""
    given = {key: section[key] for key in ("words", "measure") if key in section} | claim
    text, quote, test = given.pop("text"), given.pop("quote", ""), given.pop("test", "less")
    wanted = given.pop("wanted", len(finals.configurations()))
    quoted = _file()["quotes"][quote] if quote else ""

    def tested(finals: Finals) -> Statement:
        found = list(TESTS[test](finals, **given))
        p_values = zip(found, holm([one.corrected for one in found]), strict=True)
        comparisons = [one._replace(corrected=p) for one, p in p_values]
        return Statement("paper" if quote else "submax", quoted, text, wanted, comparisons)

    found, verdicts = tested(finals), {}
    for constant, results in others.items():
        other = tested(results)
        if other.comparisons and other.comparisons != found.comparisons:
            verdicts[constant] = other.verdict
    if verdicts:
        verdicts = {"preset": found.verdict, **verdicts}
    return found._replace(by_smoothing=verdicts)


# Results that are read in other ways ----------------------------------------------------

CONDITIONED = ("rcp-optimistic", "rcp-optimized", "rcp-submax")
CONSTANTS = ("0", "0.01", "0.3", "1", "fitted")
"""What is added to counts, beside the 0.1 of the presets."""


class Smoothed(Finals):
    """Results in which the presets stand for variants with other constants; the best of several."""

    def __init__(self, finals: Finals, constants: Sequence[str]) -> None:
        self._finals = finals
        self._constants = constants

    def configurations(self) -> list[dict[str, Any]]:
        return self._finals.configurations()

    def side(self, measure: str, policy: str, labels: dict[str, Any]) -> Side | None:
        names = [policy]
        if policy in CONDITIONED:
            names = [f"{policy}, c = {one}" if one else policy for one in self._constants]
        return best_elsewhere([self._finals.side(measure, name, labels) for name in names])


# Tests ----------------------------------------------------------------------------------

Comparisons: TypeAlias = Iterator[PairedComparison]


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


def _best(
    finals: Finals, policies: Iterable[str], labels: dict[str, Any], measure: str = "regret"
) -> Side | None:
    sides = [finals.side(measure, policy, labels) for policy in policies]
    return best_elsewhere(sides, highest=measure == "reward")


def _compared(where: str, left: Side | None, right: Side | None) -> Comparisons:
    """One comparison, or none if a side is None because its cell was not run."""
    if left is not None and right is not None:
        yield PairedComparison.of(where, left, right)


def _less(
    finals: Finals,
    words: str,
    lower: Sequence[str] = (),
    higher: Sequence[str] = (),
    pairs: Sequence[Sequence[str]] = (),
    where: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    measure: str = "regret",
) -> Comparisons:
    """Compare the best policies of two families in every configuration that is asked for."""
    families: list[Any] = [((one,), (other,)) for one, other in pairs] or [(lower, higher)]
    for labels in finals.configurations():
        if any(labels[key] not in allowed for key, allowed in where.items()):
            continue
        for low, high in families:
            left = [name.format(**labels) for name in family(*low)]
            right = [name for name in family(*high) if name not in left]
            sides = (_best(finals, names, labels, measure) for names in (left, right))
            yield from _compared(words.format(**labels), *sides)


def _share(finals: Finals, policy: str, labels: dict[str, Any], words: str) -> Side | None:
    """The regret as a share of that of random choice, s = mean(x) / mean(r).

    The values are s + (x − s r) / mean(r), whose mean is s, and whose standard error is that of the
    ratio by the delta method: in a world in which one regret is large, the other is large too.
    """
    found, random = finals.side("regret", policy, labels), finals.side("regret", "random", labels)
    if found is None or random is None or random.values.mean() <= 0:
        return None
    mean = random.values.mean()
    share = found.values.mean() / mean
    name = words.format(policy=policy, **labels)
    return Side(name, share + (found.values - share * random.values) / mean)


def _share_of_random(
    finals: Finals,
    words: str,
    policies: Sequence[str],
    lower_at: dict[str, Any],
    higher_at: dict[str, Any],
) -> Comparisons:
    """Compare each policy with itself in two configurations, relative to random choice."""
    for policy in family(*policies):
        sides = (_share(finals, policy, labels, words) for labels in (lower_at, higher_at))
        yield from _compared(policy, *sides)


def _added_share(finals: Finals, words: str, policy: str, rivals: Sequence[str]) -> Comparisons:
    """Compare the regret relative to random that is added from s = 0 to s = −4."""
    added = list[Side | None]()
    for name, policies in ((policy, [policy]), ("best classic", family(*rivals))):
        dense, sparse = (
            best_elsewhere([_share(finals, one, {"shift": shift}, "{policy}") for one in policies])
            for shift in (0, -4)
        )
        added.append(dense and sparse and Side(name, sparse.values - dense.values))
    yield from _compared("added share of random's regret", *added)


def _two_thirds(finals: Finals, words: str, policy: str, shifts: Sequence[int]) -> Comparisons:
    for shift in shifts:
        random = finals.side("regret", "random", {"shift": shift})
        less = None if random is None else Side("2/3 random", random.values * 2 / 3)
        left = finals.side("regret", policy, {"shift": shift})
        yield from _compared(words.format(shift=shift), left, less)


def _ahead_in_most(finals: Finals, words: str, rivals: Sequence[str]) -> Comparisons:
    """Compare the share of configurations in which SubMax is not ahead with one half."""
    behind = []
    for labels in finals.configurations():
        submax = finals.side("regret", "rcp-submax", labels)
        best = _best(finals, family(*rivals), labels)
        if submax is None or best is None:
            return
        behind.append(float(submax.values.mean() >= best.values.mean()))
    if behind:
        left = Side("rcp-submax not ahead", np.array(behind))
        right = Side("half", np.full(len(behind), 0.5))
        yield PairedComparison.of("share of the configurations", left, right)


def _nearest_to_the_best(finals: Finals, words: str, rivals: Sequence[str]) -> Comparisons:
    """Compare means over configurations of the regret over that of the best policy."""
    ratios: dict[str, list[float]] = {}
    for labels in finals.configurations():
        names = [*family(*rivals), "rcp-submax"]
        sides = {name: finals.side("regret", name, labels) for name in names}
        means = {name: float(side.values.mean()) for name, side in sides.items() if side}
        if len(means) < len(sides) or min(means.values()) <= 0:
            return
        for policy, mean in means.items():
            ratios.setdefault(policy, []).append(mean / min(means.values()))
    if ratios:
        submax = ratios.pop("rcp-submax")
        rival = min(ratios, key=lambda policy: float(np.mean(ratios[policy])))
        left, right = Side("rcp-submax", np.array(submax)), Side(rival, np.array(ratios[rival]))
        yield PairedComparison.of("regret / lowest regret", left, right)


TESTS: dict[str, Callable[..., Comparisons]] = {
    "less": _less,
    "share of random": _share_of_random,
    "added share": _added_share,
    "two thirds": _two_thirds,
    "ahead in most": _ahead_in_most,
    "nearest to the best": _nearest_to_the_best,
}
"""What tests a claim, by its name in claims.toml."""


# The paper's environments ---------------------------------------------------------------


class EnvironmentCheck(NamedTuple):
    """The mean reward of random choice, E[R̄], in our environments and in those of the paper.

    ``error`` is the standard error of the difference, and ``distance`` the difference in such
    errors; both averages are over random environments.
    """

    where: str
    mean: float
    paper: float
    error: float
    distance: float


def environment_checks(
    section: str, finals: Finals, observations: int
) -> Iterator[EnvironmentCheck]:
    """A check for every environment that is in the paper's section and in the results."""
    table = _file().get(section, {})
    for shift, paper in table.get("means", {}).items():
        found = finals.side("reward", "random", {"shift": int(shift)})
        if found is not None and len(found.values) > 1:
            rewards = found.values / observations
            mean, ours = float(rewards.mean()), standard_error(rewards)
            # The paper gives no error: we assume our spread and its number of environments.
            error = math.hypot(ours, ours * math.sqrt(len(rewards) / table["environments"]))
            distance = _in_errors(mean - paper, error)
            yield EnvironmentCheck(f"shift={shift}", mean, paper, error, distance)
