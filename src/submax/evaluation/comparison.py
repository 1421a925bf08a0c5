"""What several policies would have earned, by several estimators."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Booleans
from submax.core.checks import one_of
from submax.core.errors import InvalidValue
from submax.core.policy import Policy
from submax.evaluation.diagnostics import (
    Caution,
    Diagnostics,
    log_cautions,
    policy_cautions,
)
from submax.evaluation.intervals import INTERVALS, Interval
from submax.evaluation.learning import learn
from submax.evaluation.log import By, Log
from submax.evaluation.off_policy import make_off_policy
from submax.evaluation.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.target import Seen, Witness
from submax.policies import make_policy
from submax.schema.learned import Learned

LOGGING = "logging policy"
"""The name of the policy that wrote the log."""
USUAL = ("ips", "snips", "clipped", "dm", "dr", "switch-dr", "dr-shrinkage")
Candidate = str | Path | Mapping[str, Any] | Policy[Any] | Learned


class Estimate(NamedTuple):
    """What a policy would have earned a decision, by one estimator; ``cautions`` concern it."""

    policy: str
    estimator: str
    value: float
    interval: Interval
    threshold: float | None
    diagnostics: Diagnostics
    cautions: tuple[str, ...]


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
    share: float | None = 0.5,
    by: By = "time",
    seed: int = 0,
) -> Comparison:
    """Evaluate policies on a log, beside the policy that wrote it.

    A policy by name, table or object is learned from a ``share`` of the rows, the first by time or
    random ones, and evaluated on the others. One that was learned before, ``Learned`` or its file,
    is evaluated on those rows too; where it was learned from this very log, on what it did not
    see, or with a caution if it saw all. With a ``share`` of None nothing is learned here, and
    all rows evaluate. Without ``estimators`` all that apply are used.

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
        raise InvalidValue(f"the level of an interval must be between 0 and 1, not {level!r}")
    named = {name: _checked(one, log, share) for name, one in _named(policies).items()}
    asked = _asked(estimators, log)
    first = np.zeros(len(log), dtype=bool) if share is None else log.chosen(share, by, seed)
    rest = log.rows(~first).with_estimated_propensities(seed)
    judge = _Judge(asked or _usual(rest), interval, level, seed)
    witness = Witness(rest, seed)
    general = list(log_cautions(witness))
    estimates = [judge.logging(witness)]
    notes = [*rest.notes, _rows_note(first)]
    for name, candidate in named.items():
        learned = (
            candidate
            if isinstance(candidate, Learned)
            else learn(log.rows(first), candidate, seed=seed, keep_rows=0)
        )
        if log.schema.context.width and learned.policy.ignores_context:
            notes.append(f"{name} does not look at the context")
        unseen = _unseen(log, learned, ~first)
        own, cautions = witness, general
        if unseen is not None and not np.array_equal(unseen, ~first):
            own = Witness(log.rows(unseen).with_estimated_propensities(seed), seed)
            cautions = list(log_cautions(own))
            notes.append(f"{name} is evaluated on the {len(own.log)} rows that it did not see")
        estimates += judge.estimates(name, own.of(learned), own, cautions, unseen is None)
    return Comparison(estimates, notes, level)


class _Judge(NamedTuple):
    estimators: list[OffPolicyEstimator]
    interval: str
    level: float
    seed: int

    def logging(self, witness: Witness) -> Estimate:
        """The mean reward of the log."""
        seen = witness.of_the_log()
        (terms,) = [make_off_policy("ips").terms(seen.evidence)]
        (ends,) = self._intervals([terms])
        return Estimate(LOGGING, "mean", terms.value, ends, None, Diagnostics.of(seen), ())

    def estimates(
        self, name: str, seen: Seen, witness: Witness, general: list[Caution], same: bool
    ) -> Iterator[Estimate]:
        """One policy by all estimators."""
        found = Diagnostics.of(seen)
        cautions = [*policy_cautions(seen, found, witness, same), *general]
        terms = [estimator.terms(seen.evidence) for estimator in self.estimators]
        for estimator, one, ends in zip(
            self.estimators, terms, self._intervals(terms), strict=True
        ):
            told = tuple(one.sentence for one in cautions if one.concerns(estimator))
            yield Estimate(name, estimator.short, one.value, ends, one.threshold, found, told)

    def _intervals(self, terms: list[Any]) -> list[Interval]:
        return INTERVALS[self.interval](terms, self.level, np.random.default_rng(self.seed))


def _named(policies: Sequence[Candidate] | Mapping[str, Candidate]) -> dict[str, Candidate]:
    if isinstance(policies, (str, Path, Learned, Policy)):
        raise InvalidValue("policies is a list or a table of policies")
    pairs = (
        policies.items()
        if isinstance(policies, Mapping)
        else [(_name(policy), policy) for policy in policies]
    )
    named: dict[str, Candidate] = {}
    for name, policy in pairs:
        if name in named or name == LOGGING:
            raise InvalidValue(f"two policies are called {name!r}: give them as a table of names")
        named[name] = policy
    return named


def _name(policy: Candidate) -> str:
    if isinstance(policy, Learned):
        return _name(policy.specification or policy.policy)
    if isinstance(policy, Mapping):
        return str(policy.get("name", policy.get("kind")))
    return repr(policy) if isinstance(policy, Policy) else str(policy)


def _is_file(candidate: Candidate) -> bool:
    return isinstance(candidate, str) and candidate.endswith(".safetensors")


def _known(candidate: Candidate) -> Learned | None:
    """A policy that was learned before."""
    if isinstance(candidate, Learned):
        return candidate
    if isinstance(candidate, Path) or _is_file(candidate):
        return Learned.read(str(candidate))
    return None


def _checked(
    candidate: Any, log: Log, share: float | None
) -> Learned | Policy[Any] | str | dict[str, Any]:
    """Read from its file, or found to suit the log, before anything is learned."""
    known = _known(candidate)
    if known is not None:
        return known
    if share is None:
        raise InvalidValue("without a share of rows to learn from, policies must be learned before")
    if isinstance(candidate, Mapping):
        candidate = {key: value for key, value in candidate.items() if key != "name"}
    made = candidate if isinstance(candidate, Policy) else make_policy(candidate)
    made.init(log.problem, 1, np.random.default_rng(0))
    return candidate  # type: ignore[no-any-return]  # a policy can be made from it


def _rows_note(learned_from: Booleans) -> str:
    count = int(learned_from.sum())
    learned = f", learned from {count}" if count else ""
    return f"evaluated on {len(learned_from) - count} rows{learned}"


def _unseen(log: Log, learned: Learned, rest: Booleans) -> Booleans | None:
    """The rows that a policy did not learn from, if any; of another log it has seen none."""
    origin = learned.origin
    if origin.log != log.fingerprint:
        return rest
    if origin.share == 1.0:
        return None
    return ~log.chosen(origin.share, origin.by, origin.seed)  # type: ignore[arg-type]  # as written


def _has_slots(log: Log) -> bool:
    return len(log.schema.menu.slots) > 1 and not log.schema.menu.intervals


def _asked(given: Sequence[str | Mapping[str, Any]], log: Log) -> list[OffPolicyEstimator]:
    """Those asked for by name."""
    if isinstance(given, (str, Mapping)):
        raise InvalidValue("estimators is a list of estimators")
    made = [make_off_policy(one) for one in given]
    for one in made:
        if one.uses_slots and not _has_slots(log):
            raise InvalidValue(f"{one.short} needs a log of several slots, and this has none")
    return made


def _usual(log: Log) -> list[OffPolicyEstimator]:
    """All that apply."""
    more = ["pseudo-inverse"] if _has_slots(log) else []
    if np.ptp(log.propensity) < 1e-9:
        more.append("replay")
    return [make_off_policy(name) for name in (*USUAL, *more)]
