"""Compares what several policies would have earned, by several off-policy estimators."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Integers
from submax.core.checks import one_of
from submax.core.errors import InputError, NotFoundError
from submax.core.policy import Policy
from submax.core.summary import Summary, counted, listed, number, percentage
from submax.evaluation.diagnostics import ChoiceFacts, LogSums, Overlap, log_cautions
from submax.evaluation.estimates import (
    DECISION,
    MOST_NAMED,
    Difference,
    Estimate,
    Options,
    SliceEstimate,
    applicable_estimators,
    chosen_estimators,
    some_names,
)
from submax.evaluation.evaluator import (
    LOGGING_POLICY,
    MOST_CLUSTERS,
    SAMPLE_ROWS,
    EvaluatedRows,
    Progress,
    Setup,
    check_slices,
    slices_of,
)
from submax.evaluation.intervals import INTERVALS
from submax.evaluation.log import By, Log, Reward, data_frame, order_notes
from submax.evaluation.sums import mean
from submax.evaluation.targets import (
    ALWAYS,
    COLUMNS,
    REWARD_MODEL,
    ClassifierPolicy,
    ColumnPolicy,
    FixedAction,
    FunctionPolicy,
    GivenProbabilities,
    RewardModelPolicy,
    Sharpened,
    TargetPolicy,
    check_same_schema,
    learned_target,
    learns,
    parsed_variant,
    policy_notes,
    split_of,
    with_every_action,
)
from submax.policies import make_policy
from submax.schema.context import Category
from submax.schema.rows import Columns
from submax.schema.trained_policy import TrainedPolicy

SUFFIX = ".safetensors"
"""The ending of files that hold a learned policy."""
DISTINCT_SHARE = 0.9
"""The rows stored with a policy are looked for in a log only if at least this share of them differ
from each other: equal rows could be other rows with the same content."""
FEWEST_STORED = 10_000
"""A policy that stores fewer rows than this, and not all it learned from, is not looked for."""
Candidate = str | Path | Mapping[str, Any] | Policy[Any] | TrainedPolicy | TargetPolicy | Any
"""A policy by name (also with a variant, ``linucb@greedy``, ``reward-model``, ``always=A`` or
``columns=prob_*``), file, table or object, a learned policy, an array of probabilities, a function,
or a fitted classifier."""


def named(policies: Sequence[Candidate] | Mapping[str, Candidate]) -> dict[str, Candidate]:
    """Return the policies by name; refuse two policies of the same name."""
    if isinstance(policies, (str, Path, TrainedPolicy, Policy, TargetPolicy, np.ndarray)):
        raise InputError(
            f"policies is one {type(policies).__name__}: give a list of policies, or a "
            "table from names to policies",
            parameter="policies",
        )
    pairs = (
        policies.items()
        if isinstance(policies, Mapping)
        else [(_name(policy), policy) for policy in policies]
    )
    named: dict[str, Candidate] = {}
    for name, policy in pairs:
        if name in named or name == LOGGING_POLICY:
            raise InputError(
                f"two policies are called {name!r}: give them as a table with a name for each, "
                "{'first': ..., 'second': ...}",
                parameter="policies",
            )
        named[name] = policy
    return named


def _name(policy: Candidate) -> str:
    if isinstance(policy, TrainedPolicy):
        return _name(policy.specification or policy.policy)
    if isinstance(policy, Mapping):
        return str(policy.get("name", policy.get("kind")))
    if isinstance(policy, (Policy, str, Path)):
        return repr(policy) if isinstance(policy, Policy) else str(policy)
    return as_target(policy).name


def _already_learned(candidate: Candidate) -> TrainedPolicy | None:
    """Return the learned policy, read from its file if necessary; None if there is none yet."""
    if isinstance(candidate, TrainedPolicy):
        return candidate
    if isinstance(candidate, Path) or (isinstance(candidate, str) and candidate.endswith(SUFFIX)):
        return TrainedPolicy.read(str(candidate))
    return None


def as_target(given: Any) -> TargetPolicy:
    """Return a policy from an array of probabilities, a fitted classifier or a function."""
    if isinstance(given, TargetPolicy):
        return given
    if hasattr(given, "predict_proba"):
        return ClassifierPolicy(given)
    if callable(given) and not isinstance(given, type):
        return FunctionPolicy(given)
    if isinstance(given, (np.ndarray, list, tuple)) or hasattr(given, "to_numpy"):
        return GivenProbabilities(given)
    raise InputError(
        f"the policy is a {type(given).__name__}: give a name, a file, a table, a "
        "policy, an array of probabilities, a function or a fitted classifier",
        parameter="policies",
    )


def _variant(candidate: Any, log: Log) -> TargetPolicy | None:
    """Return the policy of a text such as ``linucb@greedy`` or ``reward-model``; else None."""
    if not isinstance(candidate, str):
        return None
    if candidate == REWARD_MODEL:
        return RewardModelPolicy()
    if candidate.startswith(ALWAYS):
        return FixedAction(candidate.removeprefix(ALWAYS), log.schema)
    if candidate.startswith(COLUMNS):
        return ColumnPolicy(candidate.removeprefix(COLUMNS), log)
    parsed = parsed_variant(candidate)
    if parsed is None:
        return None
    return Sharpened(checked(parsed[0], log), parsed[1], candidate)


def checked(
    candidate: Any, log: Log
) -> TrainedPolicy | TargetPolicy | Policy[Any] | str | dict[str, Any]:
    """Return a candidate after checking that it suits the log; read a learned one from its file.

    The check takes place before any policy learns, so a long run does not fail at its end.
    """
    learned = _already_learned(candidate)
    if learned is not None:
        check_same_schema(learned, log)
        return learned
    variant = _variant(candidate, log)
    if variant is not None:
        return variant
    if not isinstance(candidate, (str, Mapping, Policy)):
        target = as_target(candidate)
        if isinstance(target, GivenProbabilities):
            target.check_rows(len(log))
        return target
    if isinstance(candidate, Mapping):
        candidate = {key: value for key, value in candidate.items() if key != "name"}
    made = candidate if isinstance(candidate, Policy) else make_policy(candidate)
    made.init(log.problem, 1, np.random.default_rng(0))
    return candidate


def unseen_rows(log: Log, learned: TrainedPolicy) -> Booleans | None:
    """Return which rows of the log a policy did not learn from; None if that is not known.

    If the log has only grown since the policy learned, it still begins with the same rows.
    Otherwise the rows that are stored with the policy are looked for in the log, if they differ
    enough from each other to be recognized.
    """
    origin = learned.origin
    if not 0 < origin.log_rows <= len(log) or origin.log != log.fingerprint_of(origin.log_rows):
        return _unlike_stored(log, learned)
    if log.count is not None and origin.share < 1:
        # The decisions of a row were divided: no row is wholly unseen.
        return None
    unseen = np.ones(len(log), dtype=bool)
    before = log.rows(np.arange(origin.log_rows))
    unseen[: origin.log_rows] = False
    if origin.share < 1:
        unseen[: origin.log_rows] = ~before.chosen(origin.share, origin.by, origin.seed)
    return unseen


def _unlike_stored(log: Log, learned: TrainedPolicy) -> Booleans | None:
    """Return which rows differ from all rows stored with a policy.

    None if the policy stores too few rows, or too many equal ones.
    """
    stored = _rows_as_bytes([learned.rows])
    if len(stored) < min(learned.origin.rows, FEWEST_STORED) or len(stored) == 0:
        return None
    distinct = np.unique(stored)
    if len(distinct) < DISTINCT_SHARE * len(stored):
        return None
    return ~np.isin(_rows_as_bytes(log.parts), distinct)


def _rows_as_bytes(parts: Sequence[Columns]) -> NDArray[Any]:
    """Return the context, action and reward of each row as one value to compare."""
    found = []
    for part in parts:
        columns = [part.context.astype(np.float64), part.action, part.reward[:, None]]
        table = np.ascontiguousarray(np.concatenate(columns, axis=1))
        found.append(table.view(f"V{table.shape[1] * table.itemsize}").ravel())
    return np.concatenate(found)


class Evaluation:
    """A log that is split into rows to learn from (``first``) and rows to evaluate on."""

    def __init__(
        self,
        log: Log,
        candidates: Mapping[str, Any],
        options: Options,
        progress: Progress | None,
    ) -> None:
        self._candidates, self.options, self._progress = candidates, options, progress
        self.log, self.first, self._numbers = split_of(
            log, candidates, options.share, options.by, options.seed
        )
        self.main = self._evaluated(~self.first)
        rest, logged = self.main.log, self.main.logged
        estimators = options.estimators or applicable_estimators(logged.log)
        self.options = msgspec.structs.replace(options, estimators=estimators)
        self.notes = [*(rest if self.main.is_long else logged.log).notes]
        self.notes += logged.model_choice.notes()
        if rest.cluster is not None:
            clusters = int(rest.cluster.max()) + 1
            grouped = self.main.is_long and clusters > MOST_CLUSTERS
            groups = f", in {MOST_CLUSTERS} random groups" * grouped
            self.notes.append(f"intervals are by cluster: {clusters} clusters{groups}")
        if rest.covariates is not None:
            self.notes.append("estimates that rely on weights are adjusted by covariates")
        if self.main.is_long and len(logged.log) < len(rest):
            self.notes.append(
                f"reward models and thresholds were fitted to a random sample of "
                f"{len(logged.log)} rows"
            )
        if self.first.any():
            count = self.log.count
            learned = round(float(self.first.sum() if count is None else count @ self.first))
            if log.disk is not None and learned > SAMPLE_ROWS:
                learned = SAMPLE_ROWS
            self.notes.append(f"evaluated on {rest.decisions} rows, learned from {learned}")
            self.notes.extend(order_notes(self.log, self.first, options.by))
        self._targets: dict[str, Any] = {LOGGING_POLICY: None}

    def _evaluated(self, which: Booleans) -> EvaluatedRows:
        options, rows = self.options, self.log.rows(which)
        numbers: Integers | int = int(which.argmax())
        if self._numbers is not None or not which[numbers : numbers + len(rows)].all():
            numbers = np.flatnonzero(which)
            numbers = numbers if self._numbers is None else self._numbers[numbers]
        whole = rows.session is not None or not all(
            one.adds_up for one in options.estimators.values()
        )
        return EvaluatedRows(
            rows, numbers, options.seed, options.reward_model, whole, self._progress
        )

    def target(self, name: str) -> Any:
        """Return a policy after it has learned; notes say what it learned from."""
        if name not in self._targets:
            if self._progress is not None:
                self._progress(name, len(self._targets) - 1, len(self._candidates))
            seed = self.options.seed
            self._targets[name] = learned_target(self._candidates[name], self.log, self.first, seed)
            rows = int(self.first.sum())
            self.notes += policy_notes(name, self._candidates[name], self._targets[name], rows)
        return self._targets[name]

    def own_rows(self, name: str) -> tuple[EvaluatedRows, bool]:
        """Return the rows on which to evaluate a policy, and whether it learned from all rows.

        These are the rows used for all policies, unless it learned before from some of them.
        """
        candidate = self._candidates[name]
        if learns(candidate) or self.options.apart:
            return self.main, False
        learned = candidate.base if isinstance(candidate, TargetPolicy) else candidate
        unseen = None if learned is None else unseen_rows(self.log, learned)
        if unseen is None and learned is not None:
            self.notes.append(NOT_KNOWN.format(name))
        if unseen is None or np.array_equal(unseen, ~self.first):
            return self.main, False
        if not unseen.any():
            return self.main, True
        own = self._evaluated(unseen)
        self.notes.append(
            f"{name} is evaluated on the {len(own.logged.log)} rows that it did not learn from"
        )
        return own, False


NOT_KNOWN = (
    "{} was learned from another log: whether it learned from some of these rows is not known"
)
"""The note about a policy whose rows cannot be recognized."""
BEST = "best"
"""The baseline that is chosen from the estimates: the policy with the highest recommended one."""


def check_several(policies: Sequence[str]) -> None:
    """Refuse fewer than two policies, of which none would be better than another."""
    if len(policies) < 2:
        raise InputError(
            f"the baseline is {BEST!r}, but the policies that can be evaluated are "
            f"{', '.join(policies) or 'none'}: give at least two, such as always=* for "
            "every action of the log",
            parameter="baseline",
        )


def best_baseline(estimates: Sequence[Estimate]) -> str:
    """Return the name of the policy that comes first ``in_order``."""
    order = in_order(one for one in estimates if one.recommended and one.policy != LOGGING_POLICY)
    names = [one.policy for one in order if not math.isnan(one.value)]
    check_several(names)
    return names[0]


def in_order(estimates: Iterable[Estimate]) -> list[Estimate]:
    """Return the highest value first; then those that cannot be judged, and last what is nan."""
    return sorted(estimates, key=lambda one: (math.isnan(one.value), not one.judged, -one.value))


def answer_of(found: "Comparison") -> str:
    """Return what a comparison says in one or two sentences.

    The highest of several estimates is too high on average (the winner's curse). So with several
    policies all intervals are ``joint`` ones, which hold together whichever policy is chosen: a
    policy can be the best one if the upper end of its interval is above the lower ends of all. With
    ``baseline="best"`` the paired differences from the best policy decide.
    """
    logged, *others = found.recommended()
    computed = in_order(one for one in others if not math.isnan(one.value))
    # The best of those for which the log has enough rows; the others are counted.
    known = [one for one in computed if one.judged] or computed
    log_earned = f"The log earned {logged} per {found.unit}"
    if not known:
        return f"{log_earned}; no other value could be computed."
    best = known[0]
    ends = {one.policy: one.joint or one.interval for one in known}
    floor = max(one.low for one in ends.values())
    possible = [one.policy for one in known if ends[one.policy].high >= floor]
    paired = [
        one
        for one in found.differences
        if one.recommended and one.baseline == best.policy and one.policy in ends
    ]
    if len(paired) == len(known) - 1 and all(
        (1 - one.level) * len(paired) <= (1 - found.level) * (1 + 1e-9) for one in paired
    ):
        # Paired differences from the best policy, which hold together, say more.
        not_worse = {one.policy for one in paired if one.interval.high >= 0} | {best.policy}
        possible = [one.policy for one in known if one.policy in not_worse]
    value = best.within(ends[best.policy])
    if len(known) == 1:
        first = f"{best.policy} would have earned {value}"
    elif len(possible) == 1:
        first = f"{best.policy} is the best of {len(known)} policies: it would have earned {value}"
    else:
        first = f"This log cannot tell which of the {len(known)} policies is best"
        if len(possible) <= min(MOST_NAMED, len(known) - 1):
            first = f"The best policy is one of {some_names(possible)}"
        first += f"; {best.policy} has the highest estimate, {value}"
    if len(known) > 1:
        first += f" (intervals of all policies hold together at {100 * found.level:g} %)"
    if ends[best.policy].low > logged.interval.high:
        log_earned = f"That is more than the log earned, {logged}"
    if len(known) < len(computed):
        left_out = counted(len(computed) - len(known), "more policy").replace("policys", "policies")
        log_earned += f". For {left_out} the log has too few rows"
    warned = " See the warnings." if best.cautions else ""
    return f"{first}. {log_earned}.{warned}"


MOST_NOTES = 3
"""Notes that are part of the text; the others are in the ``notes`` of the comparison."""


def summary_of(
    comparisons: Mapping[str, "Comparison"], sentences: Sequence[str], first: Sequence[str] = ()
) -> Summary:
    """Return a table of the recommended estimates, the logging policy first, then by value."""
    cells = []
    for label, found in comparisons.items():
        by_policy = {one.policy: one for one in found.recommended()}
        for one in (by_policy[name] for name in (found.policies()[0], *found.ranked())):
            numbers = [number(value) for value in (one.value, *one.interval)]
            mark = "!" if one.cautions else ""
            cells.append([*[label] * len(first), one.policy, one.estimator, *numbers, mark])
    columns = [*first, "policy", "estimator", "value", "low", "high", "!"]
    return Summary(sentences, columns, cells, texts=2 + len(first))


class FieldFacts(NamedTuple):
    """A field of the context: its ``kind`` (number or category), and its values in words."""

    name: str
    kind: str
    values: str


def field_facts(log: Log) -> list[FieldFacts]:
    """Return a line about each field of the context."""
    found = []
    schema = log.schema.context
    for name, field, column in zip(schema.names, schema.fields, log.context.T, strict=True):
        if isinstance(field, Category):
            counts = np.bincount(column.astype(np.int64), log.count, minlength=len(field.values))
            order = np.argsort(-counts, kind="stable")
            shares = [
                f"{field.values[one]} {percentage(counts[one] / log.decisions)}" for one in order
            ]
            found.append(FieldFacts(name, "category", listed(shares)))
        else:
            low, middle, high = np.quantile(column, [0, 0.5, 1])
            values = f"{number(low)} to {number(high)}, median {number(middle)}"
            found.append(FieldFacts(name, "number", values))
    return found


class Overview(NamedTuple):
    """The data checks of a log, and what is needed to compute a comparison again.

    ``rows`` were evaluated and ``learned_rows`` were learned from. ``rewards`` and
    ``propensities`` are the lowest, the mean and the highest one; ``estimated`` propensities are
    those that a model estimated. ``overlap`` has the weights of each policy. ``settings`` are the
    arguments of the comparison, and ``digest`` identifies the log: it is a SHA-256 hash of the
    contexts, actions and rewards of all rows.
    """

    rows: int
    learned_rows: int
    reward_kind: str
    rewards: tuple[float, float, float]
    propensities: tuple[float, float, float]
    estimated: int
    choices: Sequence[ChoiceFacts]
    fields: Sequence[FieldFacts]
    settings: Mapping[str, Any]
    digest: str
    overlap: Mapping[str, Overlap] = {}
    slices: Sequence[SliceEstimate] = ()


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

    def ranked(self) -> list[str]:
        """Return the names of the policies but that of the log, the highest estimate first.

        Policies for which the log has too few rows (``Estimate.judged``) come after all others.
        """
        return [one.policy for one in in_order(self.recommended()[1:])]

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

    @property
    def answer(self) -> str:
        """What the comparison says, in one or two sentences that hold for all policies together."""
        return answer_of(self)

    def report(self, path: Path | str, command: str | None = None) -> None:
        """Write a page of HTML with all results, which a browser opens without a network.

        ``command`` is the command line by which the page is made again; without it, the page has
        the arguments of ``compare``.
        """
        from submax.evaluation.report import write_report

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
                f"there is no difference of {policy!r}: only policies evaluated on the same "
                f"rows as the baseline have one ({known}): name one of them"
            )
        if estimator is None:
            return next(one for one in mine.values() if one.recommended)
        one_of(f"estimator of {policy!r}:", estimator, mine)
        return mine[estimator]

    def __repr__(self) -> str:
        return str(self._summary())

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        policies = counted(len(self.policies()) - 1, "policy").replace("policys", "policies")
        sentences = [
            f"Comparison of {policies} with the logging policy: reward per {self.unit}, "
            f"{100 * self.level:g} % intervals",
            *self.notes[:MOST_NOTES],
        ]
        chosen = self.recommended()
        if len(chosen) < len(self.estimates):
            sentences.append(
                "the recommended estimate of each policy; all "
                f"{len(self.estimates)} estimates: see rows()"
            )
        if any(one.cautions for one in chosen):
            sentences.append("! marks a value with warnings: see rows()")
        return summary_of({"": self}, sentences)

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
    log: Log,
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
    progress: Progress | None = None,
) -> Comparison:
    """Return what policies would have earned on a log, with that of the logging policy.

    A policy given by name, table or object learns from a ``share`` of the rows, the first by time
    or random ones, and is evaluated on the other rows.

    A policy that was learned before, given as ``TrainedPolicy`` or a file, is evaluated on the same
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
    differences hold together, and the ``answer`` says which policies can be the best one; policies
    are evaluated twice for that.

    ``slices`` are columns of the context. The recommended estimate of each policy is also computed
    for the rows with each value of such a column (a number is cut at its quartiles).

    A log of more than 524,288 rows is evaluated in batches: reward models and thresholds are fitted
    to a random sample of so many rows, and all sums are those of all rows. Policies learn from a
    sample if the log is on disk. ``progress`` is called before each policy, and with the parts of a
    long log.

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
    one_of("interval", interval, INTERVALS)
    if not 0 < level < 1:
        raise InputError(
            f"the level of an interval is {level!r}: give a number between 0 and 1, such as 0.95",
            parameter="level",
        )
    check_slices(slices, log.schema.context.names)
    given = with_every_action(named(policies), log.schema)
    candidates = {name: checked(one, log) for name, one in given.items()}
    one_of("baseline", baseline, [LOGGING_POLICY, BEST, *candidates])
    chosen = chosen_estimators(estimators, log.schema, log.session is not None)
    options = Options(
        estimators=chosen,
        interval=interval,
        level=level,
        share=share,
        by=by,
        seed=seed,
        apart=apart,
        reward_model=reward_model,
        baseline=baseline,
        slices=slices,
        bounds=log.problem.scale.bounds,
        policies=len(candidates),
    )
    if baseline == BEST and BEST not in candidates:
        check_several([*candidates])
        of_log = msgspec.structs.replace(options, baseline=LOGGING_POLICY)
        best = best_baseline(_compared(log, candidates, of_log, progress).estimates)
        together = len(candidates) - 1
        options = msgspec.structs.replace(options, baseline=best, together=together)
    return _compared(log, candidates, options, progress)


def _compared(
    log: Log, candidates: Mapping[str, Any], options: Options, progress: Progress | None
) -> Comparison:
    """Return the comparison with one baseline."""
    evaluation = Evaluation(log, candidates, options, progress)
    options, main, baseline = evaluation.options, evaluation.main, options.baseline
    rows = {name: evaluation.own_rows(name) for name in candidates}
    of_baseline = main if baseline == LOGGING_POLICY else rows[baseline][0]
    estimates: dict[str, list[Estimate]] = {}
    differences: dict[str, list[Difference]] = {}
    slices: dict[str, list[SliceEstimate]] = {}
    overlap: dict[str, Overlap] = {}
    overview: Overview | None = None
    # Policies that learned before from some rows may be evaluated on others.
    for batches in dict.fromkeys([main, *(one for one, _ in rows.values())]):
        names = [name for name in candidates if rows[name][0] is batches]
        sample = batches.logged.log
        setup = Setup(
            options.estimators,
            baseline if batches is of_baseline else LOGGING_POLICY,
            slices_of(sample, options.slices),
            options.interval,
            mean(sample.reward, sample.count),
            np.unique(sample.reward),
        )
        asked = [LOGGING_POLICY, *names] if batches is main else names
        sums, found = batches.evaluated(asked, evaluation.target, setup)
        choices = sums.facts(sample)
        cautions = list(log_cautions(sums, choices, batches.logged))
        if batches is main:
            overview = Overview(
                rows=sums.decisions,
                learned_rows=int(evaluation.first.sum()),
                reward_kind=str(sample.schema.rewards["kind"]),
                rewards=(float(sums.ends[0]), sums.mean_reward, float(sums.ends[-1])),
                propensities=sums.propensities,
                estimated=round(sums.estimated),
                choices=choices,
                fields=field_facts(sample),
                settings=options.settings(candidates, main.logged.model_choice.name),
                digest=log.fingerprint,
            )
        for name, of_policy in found:
            if name == LOGGING_POLICY:
                estimates[name] = [options.logging_policy(of_policy, sums)]
            else:
                untaken = batches.logged.never_taken()
                own = of_policy.cautions(sums, batches.logged, untaken, rows[name][1])
                estimates[name] = options.estimates(
                    name, of_policy, [*own, *cautions], sums.mean_reward
                )
                evaluation.notes += eligibility_notes(name, evaluation.target(name), sums)
                overlap[name] = of_policy.overlap
            best = next(one for one in estimates[name] if one.recommended)
            slices[name] = options.slice_estimates(best, of_policy)
            if batches is of_baseline and name not in (baseline, LOGGING_POLICY):
                differences[name] = options.differences(estimates[name], of_policy)
    order = [LOGGING_POLICY, *candidates]
    if overview is not None:
        overview = overview._replace(
            overlap={name: overlap[name] for name in candidates},
            slices=[one for name in order for one in slices[name]],
        )
    return Comparison(
        [one for name in order for one in estimates[name]],
        evaluation.notes,
        options.level,
        [one for name in order for one in differences.get(name, ())],
        overview,
    )


def eligibility_notes(name: str, target: Any, log: LogSums) -> Iterator[str]:
    """Yield a sentence if the one action of a policy was not eligible in some rows."""
    if isinstance(target, FixedAction):
        sets = log.by_set.items()
        rows = round(sum(one.decisions for key, one in sets if target.place in key[0]))
        if rows < log.decisions:
            yield (
                f"{name} is eligible in {rows} of {log.decisions} rows, and uniform in the others"
            )


class RewardComparisons(NamedTuple):
    """A comparison of the same policies by each reward, by the name of the reward.

    ``notes`` are sentences about which reward policies learned from, and from which rows.
    """

    comparisons: dict[str, Comparison]
    notes: list[str]

    def rows(self) -> list[dict[str, Any]]:
        """Return all estimates as rows of one table, with the reward first."""
        return [
            {"reward": reward, **row}
            for reward, found in self.comparisons.items()
            for row in found.rows()
        ]

    def to_pandas(self) -> Any:
        """Return a data frame of all estimates."""
        return data_frame(self.rows())

    def __repr__(self) -> str:
        return str(self._summary())

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        level = next(iter(self.comparisons.values())).level
        sentences = [f"Comparison by {len(self.comparisons)} rewards, {100 * level:g} % intervals"]
        return summary_of(self.comparisons, [*sentences, *self.notes[:MOST_NOTES]], ["reward"])


def compare_rewards(
    log: Log,
    policies: Sequence[Candidate] | Mapping[str, Candidate],
    *,
    combinations: Mapping[str, Mapping[str, float]] | None = None,
    learn_from: str | None = None,
    share: float = 0.5,
    by: By = "time",
    seed: int = 0,
    **options: Any,
) -> RewardComparisons:
    """Return what policies would have earned of each reward of a log.

    The log was read with several columns of rewards. ``combinations`` are further rewards, each a
    weighted sum, such as ``{"profit": {"click": 0.1, "buy": 20}}``. Policies that have to learn do
    so from one reward, ``learn_from`` (by default the first column), on a ``share`` of the rows,
    and are evaluated by all rewards on the other rows. ``options`` are those of ``compare``.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> table = {"action": rng.choice(["A", "B"], 500), "click": rng.integers(2, size=500),
    ...          "buy": rng.integers(2, size=500), "propensity": np.full(500, 0.5)}
    >>> log = Log.read(table, columns={"reward": ["click", "buy"]})
    >>> found = compare_rewards(log, {"even": np.full((500, 2), 0.5)}, estimators=["ips"],
    ...                         combinations={"both": {"click": 1, "buy": 1}})
    >>> [row["reward"] for row in found.rows()]
    ['click', 'click', 'buy', 'buy', 'both', 'both']
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
    given = with_every_action(named(policies), log.schema)
    candidates = {name: checked(one, logs[learning]) for name, one in given.items()}
    part, first, numbers = split_of(logs[learning], candidates, share, by, seed)
    targets = {name: learned_target(one, part, first, seed) for name, one in candidates.items()}
    unseen, notes = ~first, list[str]()
    for name, candidate in candidates.items():
        if isinstance(candidate, TrainedPolicy):
            known = unseen_rows(part, candidate)
            unseen &= True if known is None else known
            notes += [NOT_KNOWN.format(name)] * (known is None)
    if not unseen.any():
        raise InputError(
            "the policies have learned from all rows of this log: learn them from a "
            "share of the rows, and evaluate them on the others",
            parameter="policies",
        )
    kept = np.flatnonzero(unseen) if numbers is None else numbers[unseen]
    for name, one in targets.items():
        if isinstance(one, GivenProbabilities):
            targets[name] = one.of_rows(kept)
    if first.any():
        notes.append(
            f"policies learned from the reward {learning!r} of {part.rows(first).decisions} rows, "
            "and were evaluated on others"
        )
    rest = part.rows(unseen)
    comparisons = {
        name: compare(rest.with_reward(one), targets, seed=seed, apart=True, **options)
        for name, one in rewards.items()
    }
    return RewardComparisons(comparisons, notes)
