"""Compares what several policies would have earned, by several off-policy estimators."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from submax.core.arrays import Booleans, Integers
from submax.core.checks import one_of, positive
from submax.core.errors import InputError
from submax.core.summary import listed, number
from submax.evaluation.diagnostics import (
    FEWEST_REWARDS,
    FEWEST_TAKEN,
    UNIFORM_TOLERANCE,
    Caution,
    ChoiceFacts,
    Diagnostics,
    PolicySums,
    rare_reward_cautions,
    spread_cautions,
)
from submax.evaluation.disk import IN_MEMORY
from submax.evaluation.estimators import (
    NEEDS,
    OffPolicyEstimator,
    ThresholdEstimator,
    make_off_policy,
)
from submax.evaluation.evaluator import (
    MEAN,
    MOST_CLUSTERS,
    SAMPLE_ROWS,
    Evaluator,
    Progress,
    Setup,
    check_slices,
    slices_of,
)
from submax.evaluation.intervals import (
    EQUAL_TERMS,
    INTERVALS,
    NEED_BLOCKS,
    ConfidenceInterval,
    Summed,
    normal_quantile,
)
from submax.evaluation.log import By, Log, Reward, data_frame, divided, order_notes
from submax.evaluation.policies import (
    LOGGING_POLICY,
    Candidate,
    Target,
    candidates_of,
    learn_one,
    of_some_rows,
    unseen_rows,
)
from submax.evaluation.propensities import random_rows
from submax.evaluation.reward_models import BAYESIAN
from submax.evaluation.sums import mean
from submax.schema.trained_policy import TrainedPolicy

MOST_NAMED = 10
"""Policies that a sentence names, and that a table or page shows before the rest is folded."""
POWER = 0.8
"""Share of logs that show a difference, if they have the rows that are said to be needed."""
BEST = "best"
"""The baseline that is chosen from the estimates: the policy with the highest recommended one."""

Result = TypeVar("Result", "Estimate", "Difference")

# Results ------------------------------------------------------------------------------------------


class Estimate(NamedTuple):
    """The reward that a policy would have earned per decision, by one estimator.

    ``threshold`` is the one that the estimator used, if it has one. ``cautions`` are sentences
    about reasons not to trust the ``value`` or its ``interval``. One estimate of each policy is
    ``recommended``. The ``joint`` intervals of all recommended estimates hold together: only they
    can say which of several policies is best. A policy is ``judged`` if the log has enough rows to
    rank it: the highest of many estimates often stands on a few rows, or on a few rewards.
    ``slice`` are the column and the value that the rows have, if they are a part of the log.
    """

    policy: str
    estimator: str
    value: float
    interval: ConfidenceInterval
    threshold: float | None
    diagnostics: Diagnostics
    cautions: tuple[str, ...]
    recommended: bool = False
    joint: ConfidenceInterval | None = None
    judged: bool = True
    slice: tuple[str, str] | None = None

    def __str__(self) -> str:
        return self.within(self.interval)

    def within(self, interval: ConfidenceInterval) -> str:
        """Return the value with an interval, in words."""
        return f"{number(self.value)} [{number(interval.low)}, {number(interval.high)}]"

    def row(self) -> dict[str, Any]:
        """Return all numbers as a row of a table."""
        row: dict[str, Any] = dict(zip(("slice", "is"), self.slice or (), strict=False))
        row |= {name: getattr(self, name) for name in ("policy", "estimator", "recommended")}
        row |= {"value": self.value, **self.interval._asdict(), "threshold": self.threshold}
        return {**row, **self.diagnostics._asdict(), "warnings": " | ".join(self.cautions)}


class Difference(NamedTuple):
    """How much more a policy would have earned per decision than a ``baseline``.

    Both are estimated from the same rows, so the interval is that of the paired difference. It
    is shorter than the intervals of the two values suggest if both policies often agree.
    ``error`` is the standard error, ``rows`` the number of rows and ``level`` that of the interval.
    """

    policy: str
    baseline: str
    estimator: str
    value: float
    interval: ConfidenceInterval
    error: float
    rows: int
    level: float
    recommended: bool

    @property
    def is_clear(self) -> bool:
        """Whether the interval does not contain 0."""
        return self.interval.low > 0 or self.interval.high < 0

    def rows_needed(self, effect: float | None = None) -> float:
        """Return how many rows a log needs so that 8 of 10 such logs show a difference.

        n' = n ((1 + z_0.8 / z_level) h / d)², where h is the distance from the difference to the
        end of the interval that is closer to 0, with n rows, and d is the ``effect``, by default
        the difference that was estimated. So a difference whose sign is not clear always needs
        more than n rows. The number is as uncertain as the estimate if no effect is given.

        >>> interval = ConfidenceInterval(-0.01, 0.03)
        >>> one = Difference("p", "q", "dr", 0.01, interval, 0.01, 1000, 0.95, True)
        >>> round(one.rows_needed())
        8173
        """
        if effect is not None:
            positive("effect", effect)
        size = abs(self.value if effect is None else effect)
        if size == 0:
            return math.inf
        half = self.value - self.interval.low if self.value > 0 else self.interval.high - self.value
        times = 1 + normal_quantile(2 * POWER - 1) / normal_quantile(self.level)
        return self.rows * (times * half / size) ** 2

    def row(self) -> dict[str, Any]:
        """Return the numbers as a row of a table."""
        names = ("policy", "baseline", "estimator", "recommended", "rows")
        row = {name: getattr(self, name) for name in names}
        row |= {"difference": self.value, **self.interval._asdict()}
        return {**row, "standard_error": self.error, "rows_needed": self.rows_needed()}


TABLES = ("estimates", "differences", "slices", "actions")
"""The tables of a comparison."""


class Comparison(NamedTuple):
    """All estimates, policies in the order given, and ``notes``: sentences about the log.

    ``level`` is that of the confidence intervals, such as 0.95. ``differences`` are those of all
    policies from the baseline, and ``slices`` the recommended estimates of each policy for parts of
    the rows. All values are rewards per decision.

    The data checks are facts about the ``actions``, the lowest, the mean and the highest of the
    ``rewards`` (of this ``reward_kind``) and of the ``propensities``, and how many of these a model
    ``estimated``. Policies learned from ``learned_rows`` of the log. ``settings`` are the arguments
    of the comparison, and ``digest`` is a SHA-256 hash of the contexts, actions and rewards of all
    rows.
    """

    estimates: list[Estimate]
    notes: list[str]
    level: float
    differences: Sequence[Difference]
    slices: Sequence[Estimate]
    actions: Sequence[ChoiceFacts]
    reward_kind: str
    rewards: tuple[float, float, float]
    propensities: tuple[float, float, float]
    estimated: int
    learned_rows: int
    settings: Mapping[str, Any]
    digest: str

    def policies(self) -> list[str]:
        """Return the names of the policies, the logging policy first."""
        return list(dict.fromkeys(one.policy for one in self.estimates))

    def ranked(self) -> list[str]:
        """Return the names of the evaluated policies, the highest estimate first.

        Policies for which the log has too few rows (``Estimate.judged``) come after those that earn
        as much as the log.
        """
        logged, *others = self.recommended()

        def rank(one: Estimate) -> tuple[bool, bool, float]:
            return math.isnan(one.value), not (one.judged and one.value >= logged.value), -one.value

        return [one.policy for one in sorted(others, key=rank)]

    def judged(self) -> list[Estimate]:
        """Return the recommended estimates that the log can rank, the highest value first.

        If it has too few rows for every policy, these are all estimates with a value.
        """
        computed = [one for one in self.recommended()[1:] if not math.isnan(one.value)]
        known = [one for one in computed if one.judged] or computed
        return sorted(known, key=lambda one: -one.value)

    def estimators(self) -> list[str]:
        """Return the labels of the estimators, that of the logging policy first."""
        return list(dict.fromkeys(one.estimator for one in self.estimates))

    def rows(self, table: str = "estimates") -> list[dict[str, Any]]:
        """Return the rows of ``estimates``, ``differences``, ``slices`` or ``actions``."""
        one_of("table", table, TABLES)
        return [one.row() for one in getattr(self, table)]

    def to_pandas(self, table: str = "estimates") -> Any:
        """Return a data frame of ``estimates``, ``differences``, ``slices`` or ``actions``."""
        return data_frame(self.rows(table))

    @property
    def answer(self) -> str:
        """What the comparison says, in one or two sentences.

        The highest of several estimates is too high on average (the winner's curse). So with
        several policies all intervals are ``joint`` ones, which hold together whichever policy is
        chosen: a policy can be the best one if the upper end of its interval is above the lower
        ends of all. Where the best policy is compared with each other one, as with
        ``baseline="best"``, or one of two with the other, their paired differences decide.
        """
        logged, known = self.estimates[0], self.judged()
        others = sum(not math.isnan(one.value) for one in self.recommended()[1:]) - len(known)
        log_earned = f"The log earned {logged} per decision"
        if not known:
            return f"{log_earned}; no other value could be computed."
        best, ends = known[0], {one.policy: one.joint or one.interval for one in known}
        possible = self._possible(best.policy, ends)
        first = f"{best.policy} would have earned"
        if len(possible) < len(known):
            first = f"{best.policy} is the best of {len(known)} policies: it would have earned"
        if len(possible) > 1:
            first = f"This log cannot tell which of the {len(known)} policies is best"
            if len(possible) <= min(MOST_NAMED, len(known) - 1):
                first = f"The best policy is one of {', '.join(possible)}"
            first += f"; {best.policy} has the highest estimate,"
        first += f" {best.within(ends[best.policy])}"
        if len(known) > 1:
            first += f" (intervals of all policies hold together at {100 * self.level:g} %)"
        if ends[best.policy].low > logged.interval.high:
            log_earned = f"That is more than the log earned, {logged}"
        if others:
            left_out = "1 more policy" if others == 1 else f"{others:,} more policies"
            log_earned += f". For {left_out} the log has too few rows"
        return f"{first}. {log_earned}.{' See the warnings.' if best.cautions else ''}"

    def _possible(self, best: str, ends: Mapping[str, ConfidenceInterval]) -> list[str]:
        """Return the policies, among those with these ``ends``, that can be the best one."""
        paired = [
            one
            for one in self.differences
            if one.recommended
            and {one.policy, one.baseline} <= ends.keys()
            and best in (one.policy, one.baseline)
        ]
        if len(paired) == len(ends) - 1 and all(
            (1 - one.level) * len(paired) <= (1 - self.level) * (1 + 1e-9) for one in paired
        ):
            # Paired differences from the best policy, which hold together, say more.
            worse = {one.policy for one in paired if one.interval.high < 0}
            worse |= {one.baseline for one in paired if one.interval.low > 0}
            return [name for name in ends if name not in worse - {best}]
        floor = max(one.low for one in ends.values())
        return [name for name, one in ends.items() if one.high >= floor]

    def report(self, path: Path | str, command: str | None = None) -> None:
        """Write an HTML page with all results, which a browser can open offline.

        ``command`` is the command line that makes the page again; by default the arguments of
        ``compare`` are shown.
        """
        from submax.evaluation.report import write_report

        write_report(Path(path), self, command)

    def difference(self, policy: str, estimator: str | None = None) -> Difference:
        """Return the difference of a policy from the baseline, by the recommended estimator.

        The baseline itself, and a policy evaluated on other rows, have none.
        """
        return _of_policy(self.differences, policy, estimator)

    def recommended(self) -> list[Estimate]:
        """Return the recommended estimate of each policy, the logging policy first."""
        return [one for one in self.estimates if one.recommended]

    def find(self, policy: str, estimator: str) -> Estimate:
        """Return the estimate of a policy by an estimator; an unknown name is refused."""
        return _of_policy(self.estimates, policy, estimator)

    def __repr__(self) -> str:
        from submax.evaluation.report import text_of

        return text_of(self)


def _of_policy(results: Sequence[Result], policy: str, estimator: str | None) -> Result:
    """Return the result for a policy, by the recommended estimator if it is None."""
    one_of("policy", policy, dict.fromkeys(one.policy for one in results))
    mine = {one.estimator: one for one in results if one.policy == policy}
    best = estimator or next(name for name, one in mine.items() if one.recommended)
    one_of(f"estimator of {policy!r}:", best, mine)
    return mine[best]


# What is recommended ------------------------------------------------------------------------------

SESSIONS = "per-decision"
"""The estimator for logs with sessions. All others, except `trajectory`, have a warning there: they
assume that a decision does not change what comes later in its session. So this one is recommended,
unless its weights, which are products over a session, are spread so widely that it has more
warnings than the others."""
ORDER = (
    *("dr", "dr-shrinkage", "snips", "switch-dr", SESSIONS),
    *("pseudo-inverse", "clipped", "ips", "replay"),
)
"""Estimators in the order of preference. ``dr`` is first because it needs only the propensities or
the model of rewards to be right, and both reduce its error. Estimators with parameters of their
own come after those by name."""
MODEL_ONLY = "dm"
"""The estimator that is recommended only if there is no other, because nothing corrects the error
of its model."""
USUAL = ("ips", "snips", "clipped", "dm", "dr", "switch-dr", "dr-shrinkage")
"""Estimators that apply to every log; they are used if the caller names none."""
SAME_PROPENSITY = 1e-9
"""If propensities differ by less than this, the log is uniform and replay applies."""


def rule_of(estimators: Sequence[str]) -> str:
    """Return the rule as a reader is told it, about the estimators that were used."""
    preferred = [name for name in ORDER if name in estimators]
    rule = "the recommended estimate of a policy is the one with the fewest warnings"
    if len(preferred) > 1:
        rule += f"; among equals the first of {', '.join(preferred)}"
    if SESSIONS in estimators:
        rule += (
            f"; with sessions this is {SESSIONS}, unless its weights are spread too widely, "
            "because others assume that decisions do not change what comes later"
        )
    return f"{rule}; {MODEL_ONLY} only if there is no other" if MODEL_ONLY in estimators else rule


def recommended(estimates: Sequence[Estimate]) -> Estimate:
    """Return the estimate, among those of one policy, that the rule recommends.

    An estimate without a value is recommended only if there is no other.
    """

    def rank(one: Estimate) -> tuple[bool, bool, int, int, str]:
        kind = one.estimator
        place = ORDER.index(kind) if kind in ORDER else len(ORDER)
        return math.isnan(one.value), kind == MODEL_ONLY, len(one.cautions), place, kind

    return min(estimates, key=rank)


def missing_needs(log: Log) -> set[str]:
    """Return what of the ``NEEDS`` of estimators a log does not have."""
    slots = len(log.schema.menu.slots) > 1 and not log.schema.menu.ranges
    has = {"slots": slots, "sessions": log.session is not None}
    return {name for name in NEEDS if not has[name]}


def chosen_estimators(
    given: Sequence[str | Mapping[str, Any]], log: Log
) -> dict[str, OffPolicyEstimator]:
    """Return the estimators that the caller named, by label.

    The label is the short name; if several are of one kind, it contains their parameters.
    """
    if isinstance(given, (str, Mapping)):
        sentence = f"estimators is {given!r}: give a list of estimators"
        raise InputError(sentence, parameter="estimators")
    made, missing = [make_off_policy(one) for one in given], missing_needs(log)
    kinds, labelled = Counter(one.short for one in made), dict[str, OffPolicyEstimator]()
    for one in made:
        one.required(np.zeros(0) if missing.isdisjoint(one.relies_on) else None)
        label = one.short if kinds[one.short] == 1 else repr(one)
        if label in labelled:
            sentence = f"the estimator {label} is named twice: leave one out"
            raise InputError(sentence, parameter="estimators")
        labelled[label] = one
    return labelled


def applicable_estimators(log: Log) -> dict[str, OffPolicyEstimator]:
    """Return all estimators that apply to the log."""
    missing = missing_needs(log)
    if float(np.ptp(log.propensity)) >= SAME_PROPENSITY:
        missing.add("replay")
    names = (*USUAL, "pseudo-inverse", "per-decision", "trajectory", "replay")
    made = {name: make_off_policy(name) for name in names}
    return {name: one for name, one in made.items() if missing.isdisjoint(one.relies_on)}


# Computing a comparison ---------------------------------------------------------------------------


class Split:
    """The ``whole`` log in rows that policies learn from (``first``), and those that none has seen.

    Rows that stand for several decisions may be divided: ``numbers`` are those of the rows in the
    log of the caller, None if they are the same. ``evaluated`` are the rows from which no policy
    learns or has learned; policies that have ``learned_from_all`` of these are named apart.
    """

    def __init__(
        self,
        log: Log,
        candidates: Mapping[str, Candidate],
        share: float,
        by: By,
        seed: int,
        apart: bool = False,
    ) -> None:
        self.whole, self.log, self.numbers = log, log, None
        self.share, self.by, self.seed = share, by, seed
        self.first: Booleans = np.zeros(len(log), dtype=bool)
        if any(one.target is None for one in candidates.values()):
            found = divided(log, [share, 1 - share], by, seed)
            self.log, self.first, self.numbers = found.log, found.part == 0, found.number
        self.evaluated, self.learned_from_all, self.notes = ~self.first, list[str](), list[str]()
        known = list[str]()
        for name, one in candidates.items():
            if apart or not isinstance(one.target, TrainedPolicy):
                continue
            unseen = unseen_rows(self.log, one.target)
            if unseen is None:
                self.notes.append(
                    f"{name} was learned from another log: whether it learned from some of these "
                    "rows is not known"
                )
            elif not (self.evaluated & unseen).any():
                self.learned_from_all.append(name)
            else:
                self.evaluated &= unseen
                known.append(name)
        rows = np.count_nonzero(self.evaluated)
        self.notes += [
            f"policies are evaluated on {rows} rows, from which {name} did not learn"
            for name in known
        ]

    @cached_property
    def learning(self) -> Log:
        """The rows to learn from; a sample of them if the log may be larger than memory."""
        rows = np.flatnonzero(self.first)
        if self.log.folder is not None:
            rows = rows[random_rows(len(rows), IN_MEMORY, self.seed)]
        return self.log.rows(rows)

    @property
    def rest(self) -> Log:
        """The rows to evaluate on."""
        return self.log.rows(self.evaluated)

    @property
    def places(self) -> Integers:
        """The numbers of the evaluated rows in the log of the caller."""
        rows = np.flatnonzero(self.evaluated)
        return rows if self.numbers is None else self.numbers[rows]

    @property
    def numbered(self) -> Integers | int:
        """The same numbers, or the first one if they are consecutive, which takes no memory."""
        first, count = int(self.evaluated.argmax()), np.count_nonzero(self.evaluated)
        consecutive = self.numbers is None and self.evaluated[first : first + count].all()
        return first if consecutive else self.places

    def target(self, candidate: Candidate) -> Target:
        """Return what decides, after it has learned if it has to."""
        if candidate.target is not None:
            return candidate.target
        return learn_one(self.learning, candidate.specification, seed=self.seed, keep_rows=0)


@dataclass(frozen=True)
class Evaluation:
    """Policies that have learned from one part of a log, and the part to evaluate them on.

    ``targets`` are what decides for each of the ``candidates``, ``estimators`` are by label, and
    ``interval``, ``level`` and ``slices`` are those of ``compare``.
    """

    split: Split
    rows: Evaluator
    candidates: Mapping[str, Candidate]
    targets: Mapping[str, Target]
    estimators: Mapping[str, OffPolicyEstimator]
    interval: str
    level: float
    slices: Sequence[str]

    @cached_property
    def _computed(self) -> dict[str, OffPolicyEstimator]:
        """The estimators, and those without a threshold: their intervals are needed, too."""
        every = self.estimators.values()
        plain = [one.plain for one in every if isinstance(one, ThresholdEstimator)]
        return {**{one.short: one for one in plain}, **self.estimators}

    def _notes(self) -> Iterator[str]:
        rows, rest, sample, split = self.rows, self.rows.log, self.rows.sample.log, self.split
        yield from (rest if rows.is_long else sample).notes
        if rows.model_name != BAYESIAN:
            yield f"the reward model is {rows.model_name}"
        if rest.cluster is not None:
            grouped = rows.is_long and rows.clusters > MOST_CLUSTERS
            groups = f", in {MOST_CLUSTERS} random groups" * grouped
            yield f"intervals are by cluster: {rows.clusters} clusters{groups}"
        if rest.covariates is not None:
            yield "estimates that rely on weights are adjusted by covariates"
        if rows.is_long and len(sample) < len(rest):
            yield (
                f"reward models and thresholds were fitted to a random sample of {len(sample)} rows"
            )
        if split.first.any():
            learned = round(float(split.log.counts @ split.first))
            if rest.folder is not None:
                learned = min(learned, SAMPLE_ROWS)
            yield f"evaluated on {rest.decisions} rows, learned from {learned}"
            yield from order_notes(split.log, split.first, split.by)
        yield from split.notes
        for name, one in self.targets.items():
            if isinstance(one, TrainedPolicy) and one.ignores_context:
                yield f"{name} does not look at the context"

    def compared(self, baseline: str, together: int = 1) -> Comparison:
        """Return the comparison with a baseline; so many differences hold ``together``."""
        rows, sample = self.rows, self.rows.sample.log
        rewards, slices = np.unique(sample.reward), slices_of(sample, self.slices)
        centre = mean(sample.reward, sample.counts)
        setup = Setup(self._computed, baseline, slices, centre, rewards)
        found = rows.evaluated({LOGGING_POLICY: None, **self.targets}, setup)
        log, actions, notes = found.log, found.log.facts(sample), [*self._notes()]
        ranges = bool(sample.schema.menu.ranges)
        common = [*log.cautions(actions, ranges, len(rewards)), *model_cautions(rows)]
        largest = None if ranges else 1 / log.propensities[0]
        untaken = listed([one.action for one in actions if not one.rows])
        level = 1 - (1 - self.level) / together
        estimates, differences = list[Estimate](), list[Difference]()
        of_slices = list[Estimate]()
        for name in (LOGGING_POLICY, *self.candidates):
            sums = found.policies[name][None]
            if name == LOGGING_POLICY:
                cautions = [*rare_reward_cautions(sums.diagnostics)]
                cautions += log.large_reward_cautions(len(rewards))
            else:
                cautions = [LEARNED_FROM_ALL] * (name in self.split.learned_from_all)
                cautions += [*sums.cautions(log, largest, untaken), *common]
                only = self.candidates[name].only
                if only is not None:
                    eligible = round(float(log.eligible_decisions(sample, 0)[only]))
                    notes += [
                        f"{name} is eligible in {eligible} of {log.decisions} rows, and uniform in "
                        "the others"
                    ] * (eligible < log.decisions)
            mine = self._estimates(name, sums, cautions, log.mean_reward)
            estimates += mine
            best = next(one for one in mine if one.recommended)
            for cut, part in found.policies[name].items():
                if cut is not None:
                    about = part.diagnostics
                    doubts = [*rare_reward_cautions(about), *spread_cautions(about, "all")]
                    one = self._estimate(name, best.estimator, part, doubts)
                    one = one._replace(recommended=True, judged=best.judged)
                    of_slices.append(one._replace(slice=(cut.column, cut.value)))
            if name not in (baseline, LOGGING_POLICY):
                for one in mine:
                    value, ends, summed = self._interval(sums, one.estimator, level, True)
                    of = name, baseline, one.estimator, value, ends, summed.error
                    differences.append(
                        Difference(*of, one.diagnostics.rows, level, one.recommended)
                    )
        return Comparison(
            estimates,
            notes,
            self.level,
            differences,
            of_slices,
            actions,
            str(sample.schema.rewards["kind"]),
            (log.ends.low, log.mean_reward, log.ends.high),
            log.propensities,
            round(log.estimated),
            int(self.split.first.sum()),
            settings={
                "policies": listed([*self.candidates], MOST_NAMED),
                "estimators": ", ".join(self.estimators),
                "reward model": rows.model_name,
                "interval": self.interval,
                "level": self.level,
                "share": self.split.share,
                "by": self.split.by,
                "seed": self.split.seed,
                "baseline": baseline,
            },
            digest=self.split.whole.fingerprint,
        )

    def _estimates(
        self, name: str, sums: PolicySums, cautions: Sequence[Caution], logged: float
    ) -> list[Estimate]:
        """Return the value of one policy by each estimator; one of them is recommended.

        ``logged`` is the mean reward of the log.
        """
        about, of_log, policies = sums.diagnostics, name == LOGGING_POLICY, len(self.candidates)
        labels = [MEAN] if of_log else self.estimators
        found = [self._estimate(name, label, sums, cautions) for label in labels]
        best, joint = recommended(found), None
        if policies > 1 and not of_log:
            level = 1 - (1 - self.level) / policies
            joint = self._interval(sums, best.estimator, level)[1]
        # Few rewards are enough for a policy that clearly earns less than the log.
        enough = about.effective_rewards >= FEWEST_REWARDS or about.usual >= logged
        judged = about.effective >= FEWEST_TAKEN and (enough or best.interval.high < logged)
        marked = best._replace(recommended=True, joint=joint)
        return [(marked if one is best else one)._replace(judged=judged or of_log) for one in found]

    def _estimate(
        self, name: str, label: str, sums: PolicySums, cautions: Sequence[Caution]
    ) -> Estimate:
        """Return an estimate with the cautions that concern it, and one if it was cut off."""
        value, ends, summed = self._interval(sums, label, self.level)
        of_log, (low, high) = name == LOGGING_POLICY, self._bounds
        relies = () if of_log else self.estimators[label].relies_on
        sentences = [why for about, why in cautions if of_log or about in ("all", *relies)]
        if abs(summed.value - value) > EQUAL_TERMS * (high - low):
            sentences.append(
                f"the estimate is {summed.value:.4g} and was cut off at {value:g}, because rewards "
                f"are from {low:g} to {high:g}"
            )
        about = sums.diagnostics
        return Estimate(name, label, value, ends, summed.threshold, about, tuple(sentences))

    @property
    def _bounds(self) -> tuple[float, float]:
        return self.rows.log.problem.scale.bounds or (-np.inf, np.inf)

    def _interval(
        self, sums: PolicySums, label: str, level: float, difference: bool = False
    ) -> tuple[float, ConfidenceInterval, Summed]:
        """Return the value and the interval of an estimate, or of its difference, and both as sums.

        The interval allows for the bias of a threshold. If the bounds of rewards are known, value
        and interval are cut off there, because no policy can earn more or less.
        """
        estimator, labels = self._computed.get(label), [label]
        if isinstance(estimator, ThresholdEstimator):
            labels.append(estimator.plain.short)
        several = [sums.estimates[one] for one in labels]
        summed = [one.difference() if difference else one.estimate() for one in several]
        ends = [INTERVALS[self.interval](one, level) for one in summed]
        (low, high), found = self._bounds, summed[0]
        if difference:
            low, high = low - high, high - low
        value, *cut = np.clip([found.value, *ends[0].joined(ends[-1])], low, high).tolist()
        return value, ConfidenceInterval(*cut), found


LEARNED_FROM_ALL = (
    "all",
    "the policy was learned from the rows on which it is evaluated, so it looks too good: learn it "
    "from a share of the rows",
)


def model_cautions(rows: Evaluator) -> Iterator[Caution]:
    """Yield cautions about the propensities of slots."""
    slots = rows.slots.of(rows.sample.log)
    if slots is None:
        return
    if rows.slots.estimated:
        yield (
            "slots",
            "the propensities of single slots are estimated: log them in columns propensity_SLOT",
        )
    elif np.abs(np.log(slots.prod(axis=1) / rows.sample.log.propensity)).mean() > UNIFORM_TOLERANCE:
        yield (
            "slots",
            "the log did not choose its slots independently of each other, which the "
            "pseudo-inverse assumes",
        )


def compare(
    log: Log,
    policies: Sequence[Any] | Mapping[str, Any],
    *,
    estimators: Sequence[str | Mapping[str, Any]] = (),
    interval: str = "gamma",
    level: float = 0.95,
    share: float = 0.5,
    by: By = "time",
    seed: int = 0,
    apart: bool = False,
    reward_model: Any = None,
    baseline: str = LOGGING_POLICY,
    slices: Sequence[str] = (),
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Return what policies would have earned on a log, with that of the logging policy.

    A policy is given by name, table or object, and then learns from a ``share`` of the rows, the
    first by time or random ones; or it is a ``TrainedPolicy`` or its file, an array of its
    probabilities ``[N, M]`` in all rows, a function from columns of context to actions or
    probabilities, or a fitted classifier. ``linucb@greedy`` is the variant of a policy that takes
    its most likely action, ``linucb@temperature=0.5`` one that is sharper, ``always=A`` takes the
    action A, and ``always=*`` stands for one such policy for each action.

    All policies are evaluated on the same rows, from which none of them learned, now or before. If
    one learned from all rows, its estimates have a caution; ``apart=True`` asserts that none did.

    Without ``estimators`` all that apply to the log are used. ``interval`` is `gamma` (which also
    holds for rare rewards), `normal`, or `sequential` (which holds at all looks at a growing log
    together). One estimate of each policy is recommended: the one with the fewest warnings.

    ``reward_model`` is the model on which ``dm`` and ``dr`` rely: `bayesian` (the default), or a
    dotted name, a table of ``kind`` and parameters, or an object of scikit-learn. It is
    cross-fitted.

    The ``differences`` are paired: from the ``baseline``, a policy by name or the logging policy.
    With ``baseline="best"`` it is the policy with the highest estimate, the intervals of all
    differences hold together, and the ``answer`` says which policies can be the best one; policies
    are evaluated twice for that.

    ``slices`` are columns of the context. The recommended estimate of each policy is also computed
    for the rows with each value of such a column (a number is cut at its quartiles).

    A log of more than 524,288 rows is evaluated in batches: reward models and thresholds are fitted
    to a random sample of so many rows, and all sums are those of all rows. If the log has more than
    two million rows, policies learn from a sample, too. Batches are those of threads, or of the
    workers of the Dask ``scheduler`` at an address. ``progress`` is called before each policy,
    and with the parts of a long log.

    >>> rng = np.random.default_rng(0)
    >>> action = rng.integers(2, size=2000)
    >>> reward = rng.random(2000) < 0.2 + 0.3 * action
    >>> log = Log.read({"action": action, "reward": reward, "propensity": np.full(2000, 0.5)})
    >>> found = compare(log, ["rcp-submax"], estimators=["snips"])
    >>> found.find("rcp-submax", "snips").value > found.find("logging policy", "mean").value
    True
    """
    one_of("interval", interval, INTERVALS)
    if not 0 < level < 1:
        raise InputError(
            f"the level of an interval is {level!r}: give a number between 0 and 1, such as 0.95",
            parameter="level",
        )
    check_slices(slices, log.schema.context.names)
    candidates = candidates_of(policies, log)
    one_of("baseline", baseline, [LOGGING_POLICY, BEST, *candidates])
    chosen, split = (
        chosen_estimators(estimators, log),
        Split(log, candidates, share, by, seed, apart),
    )
    rows = Evaluator(
        split.rest,
        seed,
        reward_model,
        split.numbered,
        in_batches=True,
        blocks=interval == NEED_BLOCKS,
        progress=progress,
        scheduler=scheduler,
    )
    chosen, targets = chosen or applicable_estimators(rows.sample.log), dict[str, Target]()
    for place, (name, one) in enumerate(candidates.items()):
        if progress is not None:
            progress(name, place, len(candidates))
        targets[name] = split.target(one)
    evaluation = Evaluation(split, rows, candidates, targets, chosen, interval, level, slices)
    if baseline != BEST or BEST in candidates:
        return evaluation.compared(baseline)
    judged = evaluation.compared(LOGGING_POLICY).judged()
    best = judged[0].policy if judged else LOGGING_POLICY
    return evaluation.compared(best, max(len(candidates) - 1, 1))


def compare_rewards(
    log: Log,
    policies: Sequence[Any] | Mapping[str, Any],
    *,
    combinations: Mapping[str, Mapping[str, float]] | None = None,
    learn_from: str | None = None,
    share: float = 0.5,
    by: By = "time",
    seed: int = 0,
    **options: Any,
) -> dict[str, Comparison]:
    """Return the comparison of policies by each reward of a log with several of them.

    ``combinations`` are further rewards, each a weighted sum, such as ``{"profit": {"click": 0.1,
    "buy": 20}}``. Policies that have to learn do so from the reward ``learn_from``, by default the
    first column. The other ``options`` are those of ``compare``.

    >>> rng = np.random.default_rng(0)
    >>> table = {"action": rng.choice(["A", "B"], 500), "click": rng.integers(2, size=500),
    ...          "buy": rng.integers(2, size=500), "propensity": np.full(500, 0.5)}
    >>> log = Log.read(table, columns={"reward": ["click", "buy"]})
    >>> found = compare_rewards(log, {"even": np.full((500, 2), 0.5)}, estimators=["ips"],
    ...                         combinations={"both": {"click": 1, "buy": 1}})
    >>> [*found]
    ['click', 'buy', 'both']
    """
    rewards: dict[str, Reward] = {name: name for name in log.outcome_names}
    for name, weights in (combinations or {}).items():
        if name in rewards:
            raise InputError(
                f"the combination {name!r} has the name of a column of rewards: give it "
                "another name",
                parameter="combinations",
            )
        rewards[name] = weights
    logs = {name: log.with_reward(one) for name, one in rewards.items()}
    learning = learn_from or next(iter(rewards), "")
    if learning not in logs:
        raise InputError(
            f"learn_from is {learn_from!r}; one of {', '.join(logs) or 'several rewards'} is "
            "allowed: read the log with several columns of rewards, and name one of them",
            parameter="learn_from",
        )
    candidates = candidates_of(policies, logs[learning])
    split = Split(logs[learning], candidates, share, by, seed)
    if split.learned_from_all:
        raise InputError(
            f"{', '.join(split.learned_from_all)} learned from all rows of this log, and rows that "
            "no policy has learned from are needed: learn from a share of the rows",
            parameter="policies",
        )
    targets = {
        name: one._replace(target=of_some_rows(split.target(one), split.places))
        for name, one in candidates.items()
    }
    notes = split.notes
    if split.first.any():
        notes.append(
            f"policies learned from the reward {learning!r} of "
            f"{split.log.rows(split.first).decisions} rows, and were evaluated on others"
        )
    rest = split.rest
    found = {
        name: compare(rest.with_reward(one), targets, seed=seed, apart=True, **options)
        for name, one in rewards.items()
    }
    return {name: one._replace(notes=[*one.notes, *notes]) for name, one in found.items()}
