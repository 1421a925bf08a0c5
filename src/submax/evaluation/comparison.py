"""Compares what several policies would have earned, by several off-policy estimators."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from submax.core.arrays import Booleans, Integers
from submax.core.checks import one_of
from submax.core.disk import IN_MEMORY
from submax.core.errors import InputError
from submax.core.summary import listed
from submax.evaluation.diagnostics import (
    FEWEST_REWARDS,
    FEWEST_TAKEN,
    UNIFORM_TOLERANCE,
    Caution,
    LogSums,
    PolicySums,
    rare_reward_cautions,
    spread_cautions,
)
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
from submax.evaluation.log import By, Log, Reward, divided, order_notes
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
from submax.evaluation.report import MOST_NAMED, Comparison, Difference, Estimate, recommended
from submax.evaluation.reward_models import BAYESIAN
from submax.schema.trained_policy import TrainedPolicy
from submax.statistics.intervals import (
    EQUAL_TERMS,
    INTERVALS,
    NEED_BLOCKS,
    ConfidenceInterval,
    Summed,
)
from submax.statistics.sums import mean

BEST = "best"
"""The baseline that is chosen from the estimates: the policy with the highest recommended one."""
USUAL = ("ips", "snips", "clipped", "dm", "dr", "switch-dr", "dr-shrinkage")
"""Estimators that apply to every log; they are used if the caller names none."""
SAME_PROPENSITY = 1e-9
"""If propensities differ by less than this, the log is uniform and replay applies."""


def missing_needs(log: Log) -> set[str]:
    """Return those ``NEEDS`` of estimators that a log does not meet."""
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
    estimators, missing = list(map(make_off_policy, given)), missing_needs(log)
    kinds = Counter(estimator.short for estimator in estimators)
    by_label = dict[str, OffPolicyEstimator]()
    for estimator in estimators:
        if not missing.isdisjoint(estimator.relies_on):
            raise estimator.not_applicable()
        label = estimator.short if kinds[estimator.short] == 1 else repr(estimator)
        if label in by_label:
            sentence = f"the estimator {label} is named twice: leave one out"
            raise InputError(sentence, parameter="estimators")
        by_label[label] = estimator
    return by_label


def applicable_estimators(log: Log) -> dict[str, OffPolicyEstimator]:
    """Return all estimators that apply to the log."""
    missing = missing_needs(log)
    if float(np.ptp(log.propensity)) >= SAME_PROPENSITY:
        missing.add("replay")
    names = (*USUAL, "pseudo-inverse", "per-decision", "trajectory", "replay")
    estimators = {name: make_off_policy(name) for name in names}
    return {name: one for name, one in estimators.items() if missing.isdisjoint(one.relies_on)}


# Computing a comparison ---------------------------------------------------------------------------


class Split:
    """The ``whole`` log in rows that policies learn from (``first``), and rows that none has seen.

    Rows that stand for several decisions may be divided: ``numbers`` are those of the rows in the
    log of the caller, None if no row was divided. No policy learns or has learned from the
    ``evaluated`` rows, except the policies that have ``learned_from_all`` of them.
    """

    def __init__(
        self,
        log: Log,
        candidates: Mapping[str, Candidate],
        share: float,
        by: By,
        seed: int,
        trained_elsewhere: bool = False,
    ) -> None:
        self.whole, self.log, self.numbers = log, log, None
        self.share, self.by, self.seed = share, by, seed
        self.first: Booleans = np.zeros(len(log), dtype=bool)
        if any(candidate.target is None for candidate in candidates.values()):
            parts = divided(log, [share, 1 - share], by, seed)
            self.log, self.first, self.numbers = parts.log, parts.part == 0, parts.number
        self.evaluated, self.learned_from_all, self.notes = ~self.first, list[str](), list[str]()
        known = list[str]()
        for name, candidate in candidates.items():
            if trained_elsewhere or not isinstance(candidate.target, TrainedPolicy):
                continue
            unseen = unseen_rows(log, candidate.target)
            if unseen is not None and self.numbers is not None:
                unseen = unseen[self.numbers]
            if unseen is None:
                self.notes.append(
                    f"{name} was learned from another log, which may contain some of these rows"
                )
            elif not (self.evaluated & unseen).any():
                self.learned_from_all.append(name)
            else:
                self.evaluated &= unseen
                known.append(name)
        rows = np.count_nonzero(self.evaluated)
        self.notes += [
            f"policies are evaluated on {rows} rows from which {name} did not learn"
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
    def rest_numbers(self) -> Integers | slice:
        """The numbers of the rows to evaluate on; a slice takes no memory if none is left out."""
        if self.numbers is not None:
            return self.numbers[self.evaluated]
        first, count = int(self.evaluated.argmax()), np.count_nonzero(self.evaluated)
        rows = slice(first, first + count)
        return rows if self.evaluated[rows].all() else np.flatnonzero(self.evaluated)

    def target(self, candidate: Candidate) -> Target:
        """Return what decides in the rows to evaluate on, after it has learned if it has to."""
        if candidate.target is not None:
            return of_some_rows(candidate.target, self.rest_numbers)
        return learn_one(self.learning, candidate.specification, seed=self.seed, keep_rows=0)


@dataclass(frozen=True)
class Evaluation:
    """Policies that have learned from one part of a log, and the part to evaluate them on.

    ``targets`` are what decides for each of the ``candidates``, and ``estimators`` are by label.
    ``interval``, ``level`` and ``slices`` are as in ``compare``.
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
        estimators = self.estimators.values()
        plain = [one.plain for one in estimators if isinstance(one, ThresholdEstimator)]
        return {**{estimator.short: estimator for estimator in plain}, **self.estimators}

    def _notes(self, log: LogSums) -> Iterator[str]:
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
        for name, target in self.targets.items():
            if isinstance(target, TrainedPolicy) and target.ignores_context:
                yield f"{name} ignores the context"
        some = {}
        for name, candidate in self.candidates.items():
            if candidate.only is not None:
                eligible = round(float(log.eligible_decisions(sample, 0)[candidate.only]))
                if eligible < log.decisions:
                    some[name] = eligible
        if some:
            counts = ", ".join(f"{name} in {rows}" for name, rows in [*some.items()][:MOST_NAMED])
            more = f" and {len(some) - MOST_NAMED} others" * (len(some) > MOST_NAMED)
            yield (
                f"actions are not always eligible: {counts} of {log.decisions} rows{more}; in the "
                "other rows such a policy chooses uniformly"
            )

    def compared(self, baseline: str, together: int = 1) -> Comparison:
        """Return the comparison with a baseline; so many differences hold ``together``."""
        rows, sample = self.rows, self.rows.sample.log
        rewards, slices = np.unique(sample.reward), slices_of(sample, self.slices)
        centre = mean(sample.reward, sample.counts)
        setup = Setup(self._computed, baseline, slices, centre, rewards)
        evaluated = rows.evaluated({LOGGING_POLICY: None, **self.targets}, setup)
        log, logged = evaluated.log, evaluated.policies[LOGGING_POLICY][None]
        actions = log.facts(sample, logged.estimates[MEAN].crowding)
        ranges = bool(sample.schema.menu.ranges)
        common = [*log.cautions(actions, ranges, len(rewards)), *slot_cautions(rows)]
        largest = None if ranges else 1 / log.propensities[0]
        untaken = listed([action.action for action in actions if not action.rows])
        level = 1 - (1 - self.level) / together
        estimates, differences = list[Estimate](), list[Difference]()
        of_slices = list[Estimate]()
        for name in (LOGGING_POLICY, *self.candidates):
            sums = evaluated.policies[name][None]
            if name == LOGGING_POLICY:
                cautions = [*rare_reward_cautions(sums.diagnostics)]
                cautions += log.large_reward_cautions(len(rewards))
            else:
                cautions = [LEARNED_FROM_ALL] * (name in self.split.learned_from_all)
                cautions += [*sums.cautions(log, largest, untaken), *common]
            of_policy = self._estimates(name, sums, cautions, log.mean_reward)
            estimates += of_policy
            best = next(estimate for estimate in of_policy if estimate.recommended)
            for cut, part in evaluated.policies[name].items():
                if cut is not None:
                    about = part.diagnostics
                    doubts = [*rare_reward_cautions(about), *spread_cautions(about, "all")]
                    estimate = self._estimate(name, best.estimator, part, doubts)
                    estimate = estimate._replace(recommended=True, judged=best.judged)
                    of_slices.append(estimate._replace(slice=(cut.column, cut.value)))
            if name not in (baseline, LOGGING_POLICY):
                for estimate in of_policy:
                    label, count = estimate.estimator, estimate.diagnostics.rows
                    value, interval, summed = self._interval(sums, label, level, True)
                    numbers = value, interval, summed.error, count, level, estimate.recommended
                    differences.append(Difference(name, baseline, label, *numbers))
        return Comparison(
            estimates,
            [*self._notes(log)],
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
        estimates = [self._estimate(name, label, sums, cautions) for label in labels]
        best, joint = recommended(estimates), None
        if policies > 1 and not of_log:
            level = 1 - (1 - self.level) / policies
            joint = self._interval(sums, best.estimator, level)[1]
        # Few rewards are enough for a policy that clearly earns less than the log.
        enough = about.effective_rewards >= FEWEST_REWARDS or about.usual >= logged
        enough = enough or best.interval.high < logged
        judged = of_log or (about.effective >= FEWEST_TAKEN and enough)
        estimates[estimates.index(best)] = best._replace(recommended=True, joint=joint)
        return [estimate._replace(judged=judged) for estimate in estimates]

    def _estimate(
        self, name: str, label: str, sums: PolicySums, cautions: Sequence[Caution]
    ) -> Estimate:
        """Return an estimate with the cautions that concern it, and one if it was cut off."""
        value, interval, summed = self._interval(sums, label, self.level)
        of_log, (low, high) = name == LOGGING_POLICY, self._bounds
        relies = () if of_log else self.estimators[label].relies_on
        sentences = [why for about, why in cautions if of_log or about in ("all", *relies)]
        if abs(summed.value - value) > EQUAL_TERMS * (high - low):
            sentences.append(
                f"the estimate is {summed.value:.4g} and was cut off at {value:g}, because rewards "
                f"are from {low:g} to {high:g}"
            )
        threshold = sums.estimates[label].threshold
        return Estimate(name, label, value, interval, threshold, sums.diagnostics, tuple(sentences))

    @property
    def _bounds(self) -> tuple[float, float]:
        return self.rows.log.problem.scale.bounds or (-np.inf, np.inf)

    def _interval(
        self, sums: PolicySums, label: str, level: float, difference: bool = False
    ) -> tuple[float, ConfidenceInterval, Summed]:
        """Return the value and the interval of an estimate, or of its difference, and its sums.

        The interval allows for the bias of a threshold. If the bounds of rewards are known, value
        and interval are cut off there, because no policy can earn more or less.
        """
        estimator, labels = self._computed.get(label), [label]
        if isinstance(estimator, ThresholdEstimator):
            labels.append(estimator.plain.short)
        terms = [sums.estimates[name] for name in labels]
        summed = [one.difference() if difference else one.estimate() for one in terms]
        intervals = [INTERVALS[self.interval](one, level) for one in summed]
        low, high = self._bounds
        if difference:
            low, high = low - high, high - low
        ends = intervals[0].joined(intervals[-1])
        value, *cut = np.clip([summed[0].value, *ends], low, high).tolist()
        return value, ConfidenceInterval(*cut), summed[0]


LEARNED_FROM_ALL = (
    "all",
    "the policy was learned from the rows on which it is evaluated, so its estimate is too high: "
    "learn it from a share of the rows",
)


def slot_cautions(rows: Evaluator) -> Iterator[Caution]:
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
            "the log did not choose its slots independently of each other, as the "
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
    trained_elsewhere: bool = False,
    reward_model: Any = None,
    baseline: str = LOGGING_POLICY,
    slices: Sequence[str] = (),
    scheduler: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Return what policies would have earned on a log, and what the logging policy earned.

    A policy given by name, table or object learns from a ``share`` of the rows: the first ones
    (``by="time"``) or random ones. A policy can also be a ``TrainedPolicy`` or its file, an array
    of its probabilities ``[N, M]`` in all rows, a function from columns of context to actions or
    probabilities, or a fitted classifier. ``linucb@greedy`` is the variant of a policy that takes
    its most likely action, and ``linucb@temperature=0.5`` is sharper. ``always=A`` takes the action
    A, and ``always=*`` stands for one such policy for each action.

    All policies are evaluated on the same rows, from which none of them learned, now or before. If
    a policy learned from all rows, its estimates have a caution; ``trained_elsewhere=True`` asserts
    that no policy learned from these rows.

    Without ``estimators`` all that apply to the log are used. ``interval`` is `gamma` (which also
    holds for rare rewards), `normal`, or `sequential` (which holds at all looks at a growing log
    together). For each policy the estimate with the fewest warnings is recommended.

    ``reward_model`` is the model on which ``dm`` and ``dr`` rely: `bayesian` (the default), or a
    dotted name, a table of ``kind`` and parameters, or an object of scikit-learn. It is
    cross-fitted.

    The ``differences`` are paired, from the ``baseline``: the logging policy, or a policy by name.
    ``baseline="best"`` stands for the policy with the highest estimate. The ``answer`` then says
    which policies can be the best one: the intervals of the differences are so wide that the best
    one is left out in at most 5 of 100 logs. Policies are evaluated twice for that.

    ``slices`` are columns of the context. The recommended estimate of each policy is also computed
    for the rows with each value of such a column (a number is cut at its quartiles).

    A log of more than 524,288 rows is evaluated in batches: reward models and thresholds are fitted
    to a random sample of that many rows, and the sums cover all rows. If the log has more than two
    million rows, policies learn from a sample, too. Batches are evaluated by threads, or by the
    workers of the Dask ``scheduler`` at an address. ``progress`` is called before each policy is
    learned, and before each part of a long log.

    >>> rng = np.random.default_rng(0)
    >>> action = rng.integers(2, size=2000)
    >>> reward = rng.random(2000) < 0.2 + 0.3 * action
    >>> log = Log.read({"action": action, "reward": reward, "propensity": np.full(2000, 0.5)})
    >>> comparison = compare(log, ["rcp-submax"], estimators=["snips"])
    >>> logged = comparison.find("logging policy", "mean")
    >>> comparison.find("rcp-submax", "snips").value > logged.value
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
    chosen = chosen_estimators(estimators, log)
    split = Split(log, candidates, share, by, seed, trained_elsewhere)
    rows = Evaluator(
        split.rest,
        seed,
        reward_model,
        blocks=interval == NEED_BLOCKS,
        progress=progress,
        scheduler=scheduler,
    )
    chosen, targets = chosen or applicable_estimators(rows.sample.log), dict[str, Target]()
    for place, (name, candidate) in enumerate(candidates.items()):
        if progress is not None:
            progress(name, place, len(candidates))
        targets[name] = split.target(candidate)
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
    """Return the comparison of policies by each reward of a log that has several rewards.

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
    logs = {name: log.with_reward(reward) for name, reward in rewards.items()}
    learn_from = learn_from or next(iter(rewards), "")
    if learn_from not in logs:
        raise InputError(
            f"learn_from is {learn_from!r}, and the rewards are {', '.join(logs) or 'none'}: read "
            "the log with several columns of rewards, and name one of them",
            parameter="learn_from",
        )
    candidates = candidates_of(policies, logs[learn_from])
    split = Split(logs[learn_from], candidates, share, by, seed)
    if split.learned_from_all:
        raise InputError(
            f"{', '.join(split.learned_from_all)} learned from all rows of this log, so no rows "
            "are left for the evaluation: learn from a share of the rows",
            parameter="policies",
        )
    targets = {
        name: candidate._replace(target=split.target(candidate))
        for name, candidate in candidates.items()
    }
    if split.first.any():
        split.notes.append(
            f"policies learned from the reward {learn_from!r} of "
            f"{split.log.rows(split.first).decisions} rows, and were evaluated on others"
        )
    rest, comparisons = split.rest, dict[str, Comparison]()
    for name, reward in rewards.items():
        about = compare(
            rest.with_reward(reward), targets, seed=seed, trained_elsewhere=True, **options
        )
        comparisons[name] = about._replace(
            notes=[*about.notes, *split.notes],
            settings={**about.settings, "share": share, "by": by},
            learned_rows=int(split.first.sum()),
        )
    return comparisons
