"""The policies that a comparison is asked to evaluate."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans
from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.evaluation.logs.log import Log
from submax.evaluation.report.estimate import LOGGING_POLICY
from submax.evaluation.targets.classifier_policy import ClassifierPolicy
from submax.evaluation.targets.fixed_action import ALWAYS, FixedAction
from submax.evaluation.targets.function_policy import FunctionPolicy
from submax.evaluation.targets.given_probabilities import GivenProbabilities
from submax.evaluation.targets.probability_columns import COLUMNS, probability_columns
from submax.evaluation.targets.reward_model_policy import REWARD_MODEL, RewardModelPolicy
from submax.evaluation.targets.same_schema import check_same_schema
from submax.evaluation.targets.sharpened import Sharpened
from submax.evaluation.targets.target_policy import TargetPolicy
from submax.evaluation.targets.variant import parsed_variant
from submax.policies import make_policy
from submax.schema.columns import Columns
from submax.schema.learned import Learned

SUFFIX = ".safetensors"
"""The ending of files that hold a learned policy."""
DISTINCT_SHARE = 0.9
"""The rows stored with a policy are looked for in a log only if at least this share of them differ
from each other: equal rows could be other rows with the same content."""
FEWEST_STORED = 10_000
"""A policy that stores fewer rows than this, and not all it learned from, is not looked for."""
HASH_SEED, HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
"""Constants of the hash by which rows are compared, from the generator SplitMix64."""
Candidate = str | Path | Mapping[str, Any] | Policy[Any] | Learned | TargetPolicy | Any
"""A policy by name (also with a variant, ``linucb@greedy``, ``reward-model``, ``always=A`` or
``columns=prob_*``), file, table or object, a learned policy, an array of probabilities, a function,
or a fitted classifier."""


def named(policies: Sequence[Candidate] | Mapping[str, Candidate]) -> dict[str, Candidate]:
    """Return the policies by name; refuse two policies of the same name."""
    if isinstance(policies, (str, Path, Learned, Policy, TargetPolicy, np.ndarray)):
        raise InputError(
            f"policies is one {type(policies).__name__}, and must be a list of policies or a "
            "table from names to policies: put it into a list, [...]",
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
    if isinstance(policy, Learned):
        return _name(policy.specification or policy.policy)
    if isinstance(policy, Mapping):
        return str(policy.get("name", policy.get("kind")))
    if isinstance(policy, (Policy, str, Path)):
        return repr(policy) if isinstance(policy, Policy) else str(policy)
    return as_target(policy).name


def _is_file(candidate: Candidate) -> bool:
    return isinstance(candidate, str) and candidate.endswith(SUFFIX)


def _already_learned(candidate: Candidate) -> Learned | None:
    """Return the learned policy, read from its file if necessary; None if there is none yet."""
    if isinstance(candidate, Learned):
        return candidate
    if isinstance(candidate, Path) or _is_file(candidate):
        return Learned.read(str(candidate))
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
        f"the policy is a {type(given).__name__}; a name, a file, a table, a policy, an array of "
        "probabilities, a function or a fitted classifier is allowed: give one of them",
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
        return probability_columns(log, candidate.removeprefix(COLUMNS))
    parsed = parsed_variant(candidate)
    if parsed is None:
        return None
    return Sharpened(checked(parsed[0], log), parsed[1], candidate)


def checked(
    candidate: Any, log: Any
) -> Learned | TargetPolicy | Policy[Any] | str | dict[str, Any]:
    """Return a candidate after checking that it suits the log; read a learned one from its file.

    The log is a ``Log`` or a ``PartedLog``. The check takes place before any policy learns, so that
    a long run does not fail at its end.
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
    return candidate  # type: ignore[no-any-return]  # make_policy accepts it


def unseen_rows(log: Log, learned: Learned) -> Booleans | None:
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


def _unlike_stored(log: Log, learned: Learned) -> Booleans | None:
    """Return which rows differ from all rows stored with a policy.

    None if the policy stores too few rows, or too many equal ones.
    """
    stored = _row_hashes([learned.rows])
    if len(stored) < min(learned.origin.rows, FEWEST_STORED) or len(stored) == 0:
        return None
    distinct = np.unique(stored)
    if len(distinct) < DISTINCT_SHARE * len(stored):
        return None
    return ~np.isin(_row_hashes(log.parts), distinct)


def _row_hashes(parts: Sequence[Columns]) -> NDArray[np.uint64]:
    """Return a hash of the context, action and reward of each row."""
    hashes = [np.zeros(0, dtype=np.uint64)]
    for part in parts:
        columns = [part.context.astype(np.float64), part.action, part.reward[:, None]]
        bits = np.ascontiguousarray(np.concatenate(columns, axis=1)).view(np.uint64)
        number = np.full(len(bits), HASH_SEED, dtype=np.uint64)
        for column in bits.T:
            number = (number ^ column) * HASH_MULTIPLIER
            number ^= number >> np.uint64(29)
        hashes.append(number)
    return np.concatenate(hashes)
