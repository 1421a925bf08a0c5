"""What several policies would have earned, by several estimators."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Booleans
from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.evaluation.learning import learn
from submax.evaluation.logs.log import By, Log
from submax.evaluation.off_policy import make_off_policy
from submax.evaluation.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.report.candidates import Candidate, checked, named, unseen_rows
from submax.evaluation.report.cautions import Caution, log_cautions
from submax.evaluation.report.comparison_view import comparison_summary
from submax.evaluation.report.intervals import INTERVALS
from submax.evaluation.report.judge import Estimate, Judge
from submax.evaluation.report.witness import Witness
from submax.schema.learned import Learned

USUAL = ("ips", "snips", "clipped", "dm", "dr", "switch-dr", "dr-shrinkage")


class Comparison(NamedTuple):
    """All estimates, by policy in the order given, and sentences about the log."""

    estimates: list[Estimate]
    notes: list[str]
    level: float

    def policies(self) -> list[str]:
        """The names of the policies."""
        return list(dict.fromkeys(one.policy for one in self.estimates))

    def estimators(self) -> list[str]:
        """The short names of the estimators."""
        return list(dict.fromkeys(one.estimator for one in self.estimates))

    def rows(self) -> list[dict[str, Any]]:
        """All numbers as a table, the logging policy first."""
        return [
            {
                "policy": one.policy,
                "estimator": one.estimator,
                "value": one.value,
                "low": one.interval.low,
                "high": one.interval.high,
                "threshold": one.threshold,
                **one.diagnostics._asdict(),
                "warnings": " | ".join(one.cautions),
            }
            for one in self.estimates
        ]

    def __repr__(self) -> str:
        return str(comparison_summary(self.estimates, self.notes, self.level))

    def _repr_html_(self) -> str:
        return comparison_summary(self.estimates, self.notes, self.level).html()

    def find(self, policy: str, estimator: str) -> Estimate | None:
        """One of the estimates."""
        found = (
            one for one in self.estimates if (one.policy, one.estimator) == (policy, estimator)
        )
        return next(found, None)


def compare(
    log: Log,
    policies: Sequence[Candidate] | Mapping[str, Candidate],
    *,
    estimators: Sequence[str | Mapping[str, Any]] = (),
    interval: str = "normal",
    level: float = 0.95,
    share: float = 0.5,
    by: By = "time",
    seed: int = 0,
    apart: bool = False,
) -> Comparison:
    """Evaluate policies on a log, beside the policy that wrote it.

    A policy by name, table or object is learned from a ``share`` of the rows, the first by time or
    random ones, and evaluated on the others. One that was learned before, ``Learned`` or its file,
    is evaluated on those rows too, or on all where nothing is learned here; where it was learned
    from this very log, or from what it was before it grew, on the rows that it did not see, or
    with a caution if it saw all; ``apart`` says that it surely saw none. Without ``estimators``
    all that apply are used.

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
        raise InputError(f"the level of an interval must be between 0 and 1, not {level!r}")
    candidates = {name: checked(one, log) for name, one in named(policies).items()}
    asked = _asked(estimators, log)
    first = np.zeros(len(log), dtype=bool)
    if not all(isinstance(one, Learned) for one in candidates.values()):
        first = log.chosen(share, by, seed)
    rest = log.rows(~first).with_estimated_propensities(seed)
    judge = Judge(asked or _usual(rest), interval, level, seed)
    witness = Witness(rest, seed)
    general = list(log_cautions(witness))
    trial = _Trial(log, first, judge, witness, general, list(rest.notes), apart)
    if first.any():
        trial.notes.append(f"evaluated on {len(rest)} rows, learned from {int(first.sum())}")
    estimates = [judge.logging(witness)]
    for name, one in candidates.items():
        estimates += trial.estimates(name, one)
    return Comparison(estimates, trial.notes, level)


class _Trial(NamedTuple):
    """A log of which the ``first`` rows are learned from, and what the others witness."""

    log: Log
    first: Booleans
    judge: Judge
    witness: Witness
    cautions: list[Caution]
    notes: list[str]
    apart: bool

    def estimates(self, name: str, candidate: Any) -> Iterator[Estimate]:
        """One policy by all estimators, on rows that it did not see where there are any."""
        learned = candidate
        if not isinstance(learned, Learned):
            learned = learn(self.log.rows(self.first), candidate, seed=self.judge.seed, keep_rows=0)
        if self.log.schema.context.width and not learned.policy.facts.uses_context:
            self.notes.append(f"{name} does not look at the context")
        before = candidate is learned and not self.apart
        unseen = unseen_rows(self.log, learned) if before else None
        if unseen is None and before:
            self.notes.append(
                f"{name} was learned elsewhere: whether it saw these rows is not known"
            )
        witness, cautions = self._witness_of(name, unseen)
        saw_all = unseen is not None and not unseen.any()
        return self.judge.estimates(name, witness.of(learned), witness, cautions, saw_all)

    def _witness_of(self, name: str, unseen: Booleans | None) -> tuple[Witness, list[Caution]]:
        """The rows that all policies are judged by, unless others are those it did not see."""
        if unseen is None or not unseen.any() or np.array_equal(unseen, ~self.first):
            return self.witness, self.cautions
        seed = self.judge.seed
        own = Witness(self.log.rows(unseen).with_estimated_propensities(seed), seed)
        self.notes.append(f"{name} is evaluated on the {len(own.log)} rows that it did not see")
        return own, list(log_cautions(own))


def _has_slots(log: Log) -> bool:
    return len(log.schema.menu.slots) > 1 and not log.schema.menu.ranges


def _asked(given: Sequence[str | Mapping[str, Any]], log: Log) -> dict[str, OffPolicyEstimator]:
    """Those asked for; several of a kind are told apart by their parameters."""
    if isinstance(given, (str, Mapping)):
        raise InputError("estimators is a list of estimators")
    made = [make_off_policy(one) for one in given]
    kinds = [one.short for one in made]
    found: dict[str, OffPolicyEstimator] = {}
    for one in made:
        if one.uses_slots and not _has_slots(log):
            raise InputError(f"{one.short} needs a log of several slots, and this has none")
        label = one.short if kinds.count(one.short) == 1 else repr(one)
        if label in found:
            raise InputError(f"the estimator {label} is asked for twice")
        found[label] = one
    return found


def _usual(log: Log) -> dict[str, OffPolicyEstimator]:
    """All that apply."""
    more = ["pseudo-inverse"] if _has_slots(log) else []
    if np.ptp(log.propensity) < 1e-9:
        more.append("replay")
    return {name: make_off_policy(name) for name in (*USUAL, *more)}
