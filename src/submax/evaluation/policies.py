"""Policies that are evaluated on a log: functions from rows to probabilities, and learned ones."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import did_you_mean, whole_number
from submax.core.errors import InputError, one_line
from submax.core.policy import Policy
from submax.core.summary import listed
from submax.evaluation.log import By, Log, data_frame, divided, expanded, field_columns
from submax.evaluation.propensities import with_estimated_propensities
from submax.policies.greedy_regression import Tempered
from submax.policies.specification import (
    Specification,
    make_policy,
    parsed_variant,
    table_of,
    tempered_table,
)
from submax.schema.schema import Schema
from submax.schema.trained_policy import MOST_ROWS, Provenance, TrainedPolicy

SUFFIX = ".safetensors"
"""The ending of files that hold a learned policy."""
LOGGING_POLICY = "logging policy"
"""The name, in every comparison, of the policy that wrote the log."""
ALWAYS, EVERY = "always=", "*"
"""``always=A`` takes the action A in every row; ``always=*`` is one such policy for each action."""
COLUMNS = "columns="
"""``columns=prob_*`` is the policy whose probability of the action A is the column prob_A."""
SUM_TOLERANCE = 1e-4
"""Difference from 1 up to which the probabilities of a row may add up: they are often rounded."""


def refused(sentence: str) -> InputError:
    """Return the error about a policy that cannot be evaluated."""
    return InputError(sentence, parameter="policies")


class Rows(NamedTuple):
    """Rows in which a policy decides, with their ``numbers [n]`` in the evaluated log.

    ``context [n, F]`` is that of the log, ``encoded [n, D]`` the same as policies learn from it,
    and ``probability [n, P]`` the columns of probabilities, if the log has any.
    """

    schema: Schema
    context: NDArray[np.float32]
    encoded: NDArray[np.float32]
    numbers: Integers
    probability: Floats | None = None


PolicyTable = Callable[[Rows], Floats]
"""Returns the probabilities of all joint actions ``[n, M]``, the last slot fastest."""
Target = TrainedPolicy | PolicyTable
"""A policy that decides: one that has learned, or a function."""


class Candidate(NamedTuple):
    """A policy to evaluate: what decides, or the specification by which it still has to learn.

    ``only`` is the index of the only action that it ever takes, if it is such a policy.
    """

    target: Target | None
    specification: Any = None
    only: int | None = None


def candidates_of(policies: Sequence[Any] | Mapping[str, Any], log: Log) -> dict[str, Candidate]:
    """Return policies by name after checking that they suit the log, before any of them learns.

    ``always=*`` stands for a policy for each action; if the caller named it ``mine``, they are
    called ``mine=A``, ``mine=B``.
    """
    found: dict[str, Candidate] = {}
    for name, policy in named(policies).items():
        each = {name: policy}
        if isinstance(policy, str) and policy == ALWAYS + EVERY:
            start, actions = name.removesuffix("=" + EVERY), action_names(log.schema, policy)
            each = {f"{start}={action}": f"{ALWAYS}{action}" for action in actions}
        for key, one in each.items():
            made = candidate_of(one, log, key)
            if key in found and (made.only is None or made.only != found[key].only):
                raise refused(f"two policies are called {key}: give one of them another name")
            found.setdefault(key, made)
    return found


def named(policies: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """Return the policies by name; refuse two policies of the same name."""
    if isinstance(policies, (str, Path, TrainedPolicy, Policy, np.ndarray)):
        raise refused(
            f"policies is a single {type(policies).__name__}: give a list of policies, or a "
            "table from names to policies"
        )
    pairs = policies.items() if isinstance(policies, Mapping) else [(_name(p), p) for p in policies]
    found: dict[str, Any] = {}
    for name, policy in pairs:
        if name in found or name == LOGGING_POLICY:
            raise refused(
                f"two policies are called {name!r}: give a table with a name for each, "
                "{'first': ..., 'second': ...}"
            )
        found[name] = policy
    return found


def _name(policy: Any) -> str:
    if isinstance(policy, TrainedPolicy):
        return _name(policy.specification or policy.policy)
    if isinstance(policy, Mapping):
        return str(policy.get("name", policy.get("kind")))
    if isinstance(policy, (str, Path, Policy)):
        return str(policy)
    if hasattr(policy, "predict_proba"):
        return type(policy).__name__
    return getattr(policy, "__name__", "given probabilities")


def candidate_of(given: Any, log: Log, name: str) -> Candidate:
    """Return a policy of any kind as a candidate; refuse one that does not suit the log."""
    if isinstance(given, Candidate):
        return given
    if (learned := already_learned(given)) is not None:
        check_same_schema(learned, log)
        return Candidate(learned)
    if isinstance(given, str) and given.startswith(ALWAYS):
        action, names = given.removeprefix(ALWAYS), action_names(log.schema, given)
        if action not in names:
            raise refused(
                f"the policy is {given}, and the actions of the log are {listed(names)}: "
                f"{did_you_mean(action, names)}name one of them, or {ALWAYS}{EVERY} for each"
            )
        place = names.index(action)
        return Candidate(partial(of_one_action, place, len(names)), only=place)
    if isinstance(given, str) and given.startswith(COLUMNS):
        return Candidate(partial(of_columns, _column_places(given, log), given))
    if isinstance(given, (str, Mapping, Policy)):
        make_policy(given).init(log.problem, 1, np.random.default_rng(0))
        return Candidate(None, given)
    if hasattr(given, "predict_proba"):
        if not hasattr(given, "classes_"):
            raise refused(
                f"the policy is a {type(given).__name__} that is not fitted: fit it to the actions "
                'first, or use it in a policy that learns, {"kind": "reward-conditioned", '
                '"estimator": {"kind": "classifier", …}}'
            )
        return Candidate(partial(of_classifier, given))
    if callable(given) and not isinstance(given, type):
        return Candidate(partial(of_function, given))
    if isinstance(given, (np.ndarray, list, tuple)) or hasattr(given, "to_numpy"):
        table = np.asarray(given)
        if len(table) != len(log):
            raise refused(
                f"{name} has {len(table)} rows, and the log has {len(log)}: give the "
                "probabilities for all rows of the log, in their order"
            )
        return Candidate(partial(of_array, table, name))
    raise refused(
        f"the policy is a {type(given).__name__}: give a name, a file, a table, a policy, an array "
        "of probabilities, a function or a fitted classifier"
    )


def already_learned(given: Any, trust: bool = False) -> TrainedPolicy | None:
    """Return a learned policy, read from its file if necessary, or a variant of one; else None."""
    if isinstance(given, TrainedPolicy):
        return given
    if not isinstance(given, (str, Path)) or SUFFIX not in str(given):
        return None
    file, temperature = parsed_variant(str(given))
    if not file.endswith(SUFFIX):
        return None
    learned = TrainedPolicy.read(file, trust=trust)
    return learned if temperature is None else variant_of(learned, temperature)


def check_same_schema(learned: TrainedPolicy, log: Log) -> None:
    """Refuse a policy that was learned for other actions or contexts than those of the log.

    Whether choices are still active makes no difference.
    """
    same_menu = learned.schema.menu.revived == log.schema.menu.revived
    if not same_menu or learned.schema.context != log.schema.context:
        raise refused(
            "the policy was learned for actions or contexts that differ from those of this log: "
            "read the log with its schema, Log.read(..., schema=learned.schema)"
        )


def action_names(schema: Schema, what: str) -> list[str]:
    """Return the names of plain actions; refuse slots and real-valued actions."""
    if len(schema.menu.slots) != 1 or schema.menu.ranges:
        raise refused(
            f"{what} is for plain actions, but this log has slots or real-valued "
            "actions: name a policy, or give probabilities [rows, joint actions]"
        )
    return schema.menu.slots[0].names


# What decides: functions of rows -----------------------------------------------------------------


def of_one_action(place: int, actions: int, rows: Rows) -> Floats:
    """Return probability 1 for one action."""
    table = np.zeros((len(rows.numbers), actions))
    table[:, place] = 1.0
    return table


def of_array(table: NDArray[Any], name: str, rows: Rows) -> Floats:
    """Return the rows of an array of probabilities, or of names of actions."""
    return checked_probabilities(table[rows.numbers], rows, name)


def of_some_rows(target: Target, rows: Integers | slice) -> Target:
    """Return a policy for a log of some rows."""
    if isinstance(target, partial) and target.func is of_array:
        table, name = target.args
        return partial(of_array, table[rows], name)
    return target


def of_function(function: Callable[[dict[str, NDArray[Any]]], Any], rows: Rows) -> Floats:
    """Return what a function says of a column of values for each field of the context."""
    found = function(field_columns(rows.schema, rows.context))
    return checked_probabilities(
        found, rows, f"the results of {getattr(function, '__name__', function)}"
    )


def of_columns(places: Sequence[int], name: str, rows: Rows) -> Floats:
    """Return the probabilities that the log has in columns."""
    assert rows.probability is not None  # or the policy had been refused
    return checked_probabilities(rows.probability[:, places], rows, name)


def _column_places(given: str, log: Log) -> list[int]:
    """Return the place of the column of each action among those of probabilities."""
    pattern, known = given.removeprefix(COLUMNS), log.probability_names
    columns = [pattern.replace(EVERY, name) for name in action_names(log.schema, given)]
    if pattern.count(EVERY) != 1 or not set(columns) <= set(known):
        stands = f"stands for {listed(columns)}, and the log was read with"
        stands = f"{stands} {listed(known) or 'none of them'}" if EVERY in pattern else "has no *"
        raise refused(
            f"{given} {stands}: write one {EVERY} for the name of the action, as "
            f"in {COLUMNS}prob_{EVERY}, and read columns={{'probability': 'prob_{EVERY}'}}"
        )
    return [known.index(column) for column in columns]


def of_classifier(classifier: Any, rows: Rows) -> Floats:
    """Return the probability that a fitted classifier gives to each action.

    If it was fitted to a data frame, it gets a data frame with the same columns. Otherwise it gets
    the encoded context: the fields in their order, categories one-hot.
    """
    name, schema = type(classifier).__name__, rows.schema
    names, classes = action_names(schema, name), [str(one) for one in classifier.classes_]
    if not set(classes) <= set(names):
        raise refused(
            f"the classes of {name} are {listed(classes)}, and the actions of the log "
            f"{listed(names)}: fit it to the names of the actions"
        )
    columns = getattr(classifier, "feature_names_in_", None)
    try:
        inputs: Any = rows.encoded.astype(np.float64)
        if columns is not None:
            inputs = data_frame(field_columns(schema, rows.context))[list(columns)]
        found = classifier.predict_proba(inputs)
    except Exception as error:
        raise refused(
            f"{name} cannot predict the rows of the log ({one_line(error)}): fit it to "
            f"the columns {listed(schema.context.names)}"
        ) from error
    table = np.zeros((len(rows.numbers), len(names)))
    table[:, [names.index(one) for one in classes]] = found
    return checked_probabilities(table, rows, f"probabilities of {name}")


def checked_probabilities(given: Any, rows: Rows, what: str) -> Floats:
    """Return probabilities ``[n, M]``, or one chosen action for each row as such probabilities.

    They are divided by their sum, which must be 1 up to rounding.
    """
    table, schema, count = np.asarray(given), rows.schema, len(rows.numbers)
    choices = [choice.name for slot in schema.menu.slots for choice in slot.choices]
    if table.ndim == 1 and len(table) == count:
        names = action_names(schema, what)
        index = {name: place for place, name in enumerate(names)}
        places = [index.get(str(one), -1) for one in table.tolist()]
        if -1 in places:
            row = places.index(-1)
            raise refused(
                f"{what}, row {row}: {str(table[row])!r} is not an action of the log: give "
                f"one of {listed(names)} for each decision"
            )
        return np.eye(len(names))[places]
    size = int(np.prod([len(slot.choices) for slot in schema.menu.slots]))
    if table.shape != (count, size):
        raise refused(
            f"{what} have the shape {list(table.shape)}: give [{count}, {size}], a row for each "
            f"decision and a column for each action ({listed(choices)}), or the name of one action "
            "for each decision"
        )
    table = table.astype(np.float64)
    sums = table.sum(axis=1)
    bad = ~np.isfinite(sums) | (np.abs(sums - 1) > SUM_TOLERANCE) | (table < 0).any(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        raise refused(
            f"{what}, row {row}: the probabilities are from {table[row].min():g} to "
            f"{table[row].max():g} and add up to {sums[row]:g} ({int(bad.sum())} such rows): "
            "divide each row by its sum"
        )
    result: Floats = table / sums[:, None]
    return result


def among_eligible(table: Floats, mask: Booleans) -> Floats:
    """Return the probabilities given that the action is eligible.

    They are uniform over the eligible actions if the policy gives all of them probability 0.
    """
    eligible = np.where(mask, table, 0.0)
    total = eligible.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        uniform = mask / mask.sum(axis=1, keepdims=True)
        restricted: Floats = np.where(total > 0, eligible / total, uniform)
    return restricted


# Learning one policy -----------------------------------------------------------------------------


def variant_of(learned: TrainedPolicy, temperature: float) -> TrainedPolicy:
    """Return the variant of a learned policy; nothing is learned again."""
    return learned._replace(
        policy=Tempered(learned.policy, temperature),
        specification=tempered_table(table_of(learned.policy), temperature),
    )


def learn_one(
    log: Log,
    policy: Specification,
    *,
    share: float = 1.0,
    by: By = "time",
    seed: int = 0,
    keep_rows: int = MOST_ROWS,
) -> TrainedPolicy:
    """Return one policy learned from a log, or from a ``share`` of its rows; see ``learn``."""
    whole_number("keep_rows", keep_rows, at_least=0)
    whole_number("seed", seed, at_least=0)
    if isinstance(policy, Mapping):
        # The name is for reports.
        policy = {key: value for key, value in policy.items() if key != "name"}
    made = make_policy(policy)
    part = expanded(log if share == 1.0 else log.split(share, by, seed)[0])
    if made.traits.needs_propensities:
        part = with_estimated_propensities(part, seed)
    origin = Provenance(
        log=log.fingerprint,
        rows=len(part),
        log_rows=len(log),
        share=share,
        by=by,
        seed=seed,
        estimated_propensities=int(part.estimated.sum()),
    )
    return TrainedPolicy.of(part.schema, policy, part.parts, origin, keep_rows)


def unseen_rows(log: Log, learned: TrainedPolicy) -> Booleans | None:
    """Return which rows of the log a policy did not learn from; None if that is not known.

    If the log has only grown since the policy learned, it still begins with the same rows.
    """
    origin, rows = learned.origin, learned.origin.log_rows
    before = log if rows == len(log) else log.rows(slice(0, rows))
    if not 0 < rows <= len(log) or origin.log != before.fingerprint:
        return None
    if log.count is not None and origin.share < 1:
        # The decisions of a row were divided: no row is wholly unseen.
        return None
    unseen = np.ones(len(log), dtype=bool)
    unseen[:rows] = False
    if origin.share < 1:
        shares = [origin.share, 1 - origin.share]
        unseen[:rows] = divided(before, shares, origin.by, origin.seed).part == 1
    return unseen
