"""Compares what several policies would have earned, by several off-policy estimators."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from submax.core.arrays import Booleans, Integers
from submax.core.checks import one_of
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
        for name, one in self.targets.items():
            if isinstance(one, TrainedPolicy) and one.ignores_context:
                yield f"{name} does not look at the context"
        for name, candidate in self.candidates.items():
            if candidate.only is not None:
                eligible = round(float(log.eligible_decisions(sample, 0)[candidate.only]))
                if eligible < log.decisions:
                    yield (
                        f"{name} is eligible in {eligible} of {log.decisions} rows, and uniform in "
                        "the others"
                    )

    def compared(self, baseline: str, together: int = 1) -> Comparison:
        """Return the comparison with a baseline; so many differences hold ``together``."""
        rows, sample = self.rows, self.rows.sample.log
        rewards, slices = np.unique(sample.reward), slices_of(sample, self.slices)
        centre = mean(sample.reward, sample.counts)
        setup = Setup(self._computed, baseline, slices, centre, rewards)
        found = rows.evaluated({LOGGING_POLICY: None, **self.targets}, setup)
        log, actions = found.log, found.log.facts(sample)
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
    chosen = chosen_estimators(estimators, log)
    split = Split(log, candidates, share, by, seed, apart)
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
