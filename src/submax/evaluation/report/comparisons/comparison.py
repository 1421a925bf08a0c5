"""Compares what several policies would have earned, by several off-policy estimators."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from submax.core.checks import one_of
from submax.core.errors import InputError, NotFoundError
from submax.evaluation.frames import data_frame
from submax.evaluation.intervals import INTERVALS
from submax.evaluation.logs.counted import order_notes
from submax.evaluation.logs.log import By, Log
from submax.evaluation.overview.overview import Overview
from submax.evaluation.overview.slices import check_slices
from submax.evaluation.parts.parted_columns import PartedColumns
from submax.evaluation.parts.parted_comparison import compare_parts
from submax.evaluation.parts.parted_log import PartedLog
from submax.evaluation.report.candidates import Candidate, checked, named
from submax.evaluation.report.comparisons.best_baseline import (
    BEST,
    best_baseline,
    best_note,
    check_several,
)
from submax.evaluation.report.comparisons.comparison_options import ComparisonOptions
from submax.evaluation.report.comparisons.comparison_view import comparison_summary
from submax.evaluation.report.comparisons.difference import Difference
from submax.evaluation.report.diagnosis.cautions import log_cautions
from submax.evaluation.report.estimate import DECISION, LOGGING_POLICY, Estimate
from submax.evaluation.report.estimator_choice import applicable_estimators, chosen_estimators
from submax.evaluation.report.estimator_set import EstimatorSet
from submax.evaluation.report.evidence.logged_evidence import LoggedEvidence
from submax.evaluation.report.learned_targets import split_of
from submax.evaluation.report.split_evaluation import SplitEvaluation
from submax.evaluation.targets.fixed_action import with_every_action


class Comparison(NamedTuple):
    """All estimates, policies in the order given, and ``notes``: sentences about the log.

    ``level`` is that of the confidence intervals, such as 0.95. ``differences`` are those of all
    policies that were evaluated on the same rows as the baseline. ``overview`` has the data checks,
    the weights of the policies, and the estimates of slices. All values are rewards per ``unit``: a
    decision, or a slate of several positions.
    """

    estimates: list[Estimate]
    notes: list[str]
    level: float
    differences: Sequence[Difference] = ()
    overview: Overview | None = None
    unit: str = DECISION

    @property
    def units(self) -> str:
        """What is evaluated, in words: rows of decisions, or slates."""
        return "rows" if self.unit == DECISION else f"{self.unit}s"

    def policies(self) -> list[str]:
        """Return the names of the policies, the logging policy first."""
        return list(dict.fromkeys(one.policy for one in self.estimates))

    def estimators(self) -> list[str]:
        """Return the labels of the estimators, that of the logging policy first."""
        return list(dict.fromkeys(one.estimator for one in self.estimates))

    def rows(self) -> list[dict[str, Any]]:
        """Return all numbers as rows of a table, the logging policy first."""
        return [one.row() for one in self.estimates]

    def slice_rows(self) -> list[dict[str, Any]]:
        """Return the estimates of all slices as rows of a table."""
        slices = () if self.overview is None else self.overview.slices
        return [{"slice": one.column, "is": one.value, **one.estimate.row()} for one in slices]

    def to_pandas(self, table: str = "estimates") -> Any:
        """Return a data frame of ``estimates``, ``differences``, ``slices`` or ``actions``."""
        one_of("table", table, ["estimates", "differences", "slices", "actions"])
        actions = () if self.overview is None else self.overview.choices
        rows = {
            "estimates": self.rows(),
            "differences": [one.row() for one in self.differences],
            "slices": self.slice_rows(),
            "actions": [one.row() for one in actions],
        }
        return data_frame(rows[table])

    def report(self, path: Path | str, command: str | None = None) -> None:
        """Write a page of HTML with all results, which a browser opens without a network.

        ``command`` is the command line by which the page is made again; without it, the page has
        the arguments of ``compare``.
        """
        from submax.evaluation.page.report_page import write_report

        write_report(Path(path), self, command)

    def difference(self, policy: str, estimator: str | None = None) -> Difference:
        """Return the difference of a policy from the baseline, by the recommended estimator.

        An unknown name is refused, and so is a policy that has no difference: the baseline itself,
        or a policy that was evaluated on other rows.
        """
        one_of("policy", policy, self.policies())
        mine = {one.estimator: one for one in self.differences if one.policy == policy}
        if not mine:
            known = ", ".join(dict.fromkeys(one.policy for one in self.differences)) or "none here"
            raise NotFoundError(
                f"there is no difference of {policy!r}; policies other than the baseline that were "
                f"evaluated on the same rows have one ({known}): name one of them"
            )
        if estimator is None:
            return next(one for one in mine.values() if one.recommended)
        one_of(f"estimator of {policy!r}:", estimator, mine)
        return mine[estimator]

    def __repr__(self) -> str:
        return str(comparison_summary(self.estimates, self.notes, self.level, self.unit))

    def _repr_html_(self) -> str:
        return comparison_summary(self.estimates, self.notes, self.level, self.unit).html()

    def recommended(self) -> list[Estimate]:
        """Return the recommended estimate of each policy, the logging policy first."""
        return [one for one in self.estimates if one.recommended]

    def find(self, policy: str, estimator: str) -> Estimate:
        """Return the estimate of a policy by an estimator; an unknown name is refused."""
        one_of("policy", policy, self.policies())
        mine = {one.estimator: one for one in self.estimates if one.policy == policy}
        one_of(f"estimator of {policy!r}:", estimator, mine)
        return mine[estimator]


def compare(
    log: Log | PartedLog,
    policies: Sequence[Candidate] | Mapping[str, Candidate],
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
) -> Comparison:
    """Return what policies would have earned on a log, with that of the logging policy.

    A policy given by name, table or object learns from a ``share`` of the rows, the first by time
    or random ones, and is evaluated on the other rows.

    A policy that was learned before, given as ``Learned`` or as its file, is evaluated on the same
    rows, or on all rows if every policy was learned before. If it was learned from this log, or
    from this log before it grew, it is evaluated on the rows it did not learn from; if it learned
    from all rows, its estimates have a caution. ``apart=True`` asserts that it learned from none
    of the rows.

    ``linucb@greedy`` is the variant of a policy that takes its most likely action,
    ``linucb@temperature=0.5`` one that is sharper, ``reward-model`` takes the action with the
    highest predicted reward, ``always=A`` takes the action A, and ``always=*`` stands for one such
    policy for each action. A policy can also be an array of its probabilities ``[N, M]`` in all
    rows, a function from columns of context to actions or probabilities, or a fitted classifier.

    ``reward_model`` is the model on which ``dm`` and ``dr`` rely: `bayesian` (the default), `auto`
    (the better of it and boosted trees), a dotted name or an object of scikit-learn, or a list from
    which the one with the least held-out error is chosen. All are cross-fitted.

    The ``differences`` are paired: from the ``baseline``, a policy by name or the logging policy.
    With ``baseline="best"`` it is the policy with the highest estimate, the intervals of all
    differences hold together, and a note says which policies can be the best one; policies are
    evaluated twice for that.

    ``slices`` are columns of the context. The recommended estimate of each policy is also computed
    for the rows with each value of such a column (a number is cut at its quartiles).

    A log that is read in parts, ``PartedLog.open``, is evaluated by sums over its parts.

    Without ``estimators`` all estimators that apply to the log are used. ``interval`` is `gamma`
    (which also holds for rare rewards), `normal`, `bootstrap`, `bernstein`, or `sequential` (which
    holds at all looks at a growing log together). One estimate of each
    policy is recommended, by the rule of ``recommendation.py``.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> action = rng.integers(2, size=2000)
    >>> log = Log.from_arrays(action, rng.random(2000) < 0.2 + 0.3 * action,
    ...                       propensity=np.full(2000, 0.5))
    >>> found = compare(log, ["rcp-submax"], estimators=["snips"])
    >>> found.find("rcp-submax", "snips").value > found.find("logging policy", "mean").value
    True
    """
    _check(log, interval, level, slices)
    candidates = {
        name: PartedColumns.of(str(one), log.sample)
        if isinstance(log, PartedLog) and PartedColumns.is_named(one)
        else checked(one, log)
        for name, one in with_every_action(named(policies), log.schema).items()
    }
    one_of("baseline", baseline, [LOGGING_POLICY, BEST, *candidates])
    has_sessions = isinstance(log, Log) and log.session is not None
    chosen = chosen_estimators(estimators, log.schema, has_sessions)
    options = ComparisonOptions(
        chosen, interval, level, share, by, seed, apart, reward_model, slices
    )
    if baseline != BEST or BEST in candidates:
        return _compared(log, candidates, options, baseline)
    check_several([*candidates])
    best = best_baseline(_compared(log, candidates, options, LOGGING_POLICY).estimates)
    found = _compared(log, candidates, options, best, together=len(candidates) - 1)
    note = best_note(best, found.estimates, found.differences, level)
    return found._replace(notes=[*found.notes, note])


def _check(log: Log | PartedLog, interval: str, level: float, slices: Sequence[str]) -> None:
    """Refuse intervals and slices that cannot be computed."""
    one_of("interval", interval, INTERVALS)
    if not 0 < level < 1:
        raise InputError(
            f"the level of an interval is {level!r}, and must be between 0 and 1: "
            "give 0.95 for intervals of 95 %",
            parameter="level",
        )
    if isinstance(log, PartedLog) and slices:
        raise InputError(
            "slices are not computed for a log that is read in parts; a log in memory is allowed: "
            "read it whole (--read whole, Log.read)",
            parameter="slices",
        )


def _compared(
    log: Log | PartedLog,
    candidates: Mapping[str, Any],
    options: ComparisonOptions,
    baseline: str,
    together: int = 1,
) -> Comparison:
    """Return the comparison with one baseline; ``together`` differences hold together."""
    chosen, interval, level, share, by, seed, apart, reward_model, slices = options
    if isinstance(log, PartedLog):
        parted = compare_parts(log, candidates, options, baseline, together)
        return Comparison(
            parted.estimates, parted.notes, level, parted.differences, parted.overview
        )
    check_slices(slices, log)
    log, first, numbers = split_of(log, candidates, share, by, seed)
    rest = log.rows(~first).with_estimated_propensities(seed)
    estimator_set = EstimatorSet(
        chosen or applicable_estimators(rest), interval, level, seed, together
    )
    logged = LoggedEvidence(rest, seed, reward_model, numbers[~first])
    cautions, notes = list(log_cautions(logged)), _notes(rest, logged)
    settings = options.settings(
        candidates, estimator_set.estimators, logged.model_choice.name, baseline
    )
    overview = Overview.of(rest, int(first.sum()), settings, log.fingerprint)
    evaluation = SplitEvaluation(
        log, first, estimator_set, logged, cautions, notes, apart, reward_model, overview, slices
    )
    if first.any():
        before = log.rows(first).decisions
        evaluation.notes.append(f"evaluated on {rest.decisions} rows, learned from {before}")
        evaluation.notes.extend(order_notes(log, first, by))
    found = evaluation.compared(candidates, baseline)
    return Comparison(found.estimates, evaluation.notes, level, found.differences, found.overview)


def _notes(log: Log, logged: LoggedEvidence) -> list[str]:
    """Return sentences about the rows on which policies are evaluated."""
    notes = [*log.notes, *logged.model_choice.notes()]
    if log.cluster is not None:
        notes.append(f"intervals are by cluster: {int(log.cluster.max()) + 1} clusters")
    if log.covariates is not None:
        notes.append("estimates that rely on weights are adjusted by covariates")
    return notes
