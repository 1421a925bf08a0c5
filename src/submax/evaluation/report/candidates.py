"""Policies to be compared."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans
from submax.core.contracts.policy import Policy
from submax.core.errors import InputError
from submax.evaluation.logs.log import Log
from submax.evaluation.report.judge import LOGGING
from submax.evaluation.report.witness import check_schema
from submax.policies import make_policy
from submax.schema.columns import Columns
from submax.schema.learned import Learned

SUFFIX = ".safetensors"
"""Files of learned policies end so."""
DISTINCT, FEWEST_KEPT = 0.9, 10_000
"""Rows are told from each other where this share of them is, of all or of so many."""
SEED, MULTIPLIER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
"""Of the numbers by which rows are compared: those of the generator SplitMix64."""
Candidate = str | Path | Mapping[str, Any] | Policy[Any] | Learned


def named(policies: Sequence[Candidate] | Mapping[str, Candidate]) -> dict[str, Candidate]:
    """By name, each with one of its own."""
    if isinstance(policies, (str, Path, Learned, Policy)):
        raise InputError("policies is a list or a table of policies")
    pairs = (
        policies.items()
        if isinstance(policies, Mapping)
        else [(_name(policy), policy) for policy in policies]
    )
    named: dict[str, Candidate] = {}
    for name, policy in pairs:
        if name in named or name == LOGGING:
            raise InputError(f"two policies are called {name!r}: give them as a table of names")
        named[name] = policy
    return named


def _name(policy: Candidate) -> str:
    if isinstance(policy, Learned):
        return _name(policy.specification or policy.policy)
    if isinstance(policy, Mapping):
        return str(policy.get("name", policy.get("kind")))
    return repr(policy) if isinstance(policy, Policy) else str(policy)


def _is_file(candidate: Candidate) -> bool:
    return isinstance(candidate, str) and candidate.endswith(SUFFIX)


def _known(candidate: Candidate) -> Learned | None:
    """A policy that was learned before."""
    if isinstance(candidate, Learned):
        return candidate
    if isinstance(candidate, Path) or _is_file(candidate):
        return Learned.read(str(candidate))
    return None


def checked(candidate: Any, log: Log) -> Learned | Policy[Any] | str | dict[str, Any]:
    """Read from its file, or found to suit the log, before anything is learned."""
    known = _known(candidate)
    if known is not None:
        check_schema(known, log)
        return known
    if isinstance(candidate, Mapping):
        candidate = {key: value for key, value in candidate.items() if key != "name"}
    made = candidate if isinstance(candidate, Policy) else make_policy(candidate)
    made.init(log.problem, 1, np.random.default_rng(0))
    return candidate  # type: ignore[no-any-return]  # a policy can be made from it


def unseen_rows(log: Log, learned: Learned) -> Booleans | None:
    """Which rows a policy did not learn from; None where that cannot be told.

    A log that has grown since begins with the rows it had; where rows have come between, those
    that stay with the policy are looked for, if they can be told from each other.
    """
    origin = learned.origin
    if not 0 < origin.log_rows <= len(log) or origin.log != log.fingerprint_of(origin.log_rows):
        return _unlike(log, learned)
    unseen = np.ones(len(log), dtype=bool)
    before = log.rows(np.arange(origin.log_rows))
    unseen[: origin.log_rows] = False
    if origin.share < 1:
        unseen[: origin.log_rows] = ~before.chosen(origin.share, origin.by, origin.seed)
    return unseen


def _unlike(log: Log, learned: Learned) -> Booleans | None:
    """The rows that are not among those which stayed with a policy; None where many are alike."""
    kept = _content([learned.rows])
    if len(kept) < min(learned.origin.rows, FEWEST_KEPT) or len(kept) == 0:
        return None
    distinct = np.unique(kept)
    if len(distinct) < DISTINCT * len(kept):
        return None
    return ~np.isin(_content(log.parts), distinct)


def _content(parts: Sequence[Columns]) -> NDArray[np.uint64]:
    """A number for each row by what happened in it: context, action and reward."""
    found = [np.zeros(0, dtype=np.uint64)]
    for part in parts:
        columns = [part.context.astype(np.float64), part.action, part.reward[:, None]]
        bits = np.ascontiguousarray(np.concatenate(columns, axis=1)).view(np.uint64)
        number = np.full(len(bits), SEED, dtype=np.uint64)
        for column in bits.T:
            number = (number ^ column) * MULTIPLIER
            number ^= number >> np.uint64(29)
        found.append(number)
    return np.concatenate(found)
