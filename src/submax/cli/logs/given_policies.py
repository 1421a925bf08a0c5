"""Reads the policies and tables that are given on the command line."""

import json
from collections.abc import Sequence
from typing import Any

from submax.core.errors import InputError
from submax.evaluation.choosing.one_policy import tempered_table
from submax.evaluation.report.candidates import SUFFIX, Candidate
from submax.evaluation.targets.fixed_action import ALWAYS
from submax.evaluation.targets.probability_columns import COLUMNS, check_pattern
from submax.evaluation.targets.reward_model_policy import REWARD_MODEL
from submax.evaluation.targets.sharpened import Sharpened
from submax.evaluation.targets.target_policy import TargetPolicy
from submax.evaluation.targets.variant import parsed_variant
from submax.policies import make_policy
from submax.policies.specification import read_value, table_of, with_values
from submax.schema.learned import Learned
from submax.schema.schema import Schema


def policy_table(text: str) -> str | dict[str, Any]:
    """Return a policy by name, or as a table if parameters or a table were given."""
    if text.startswith(ALWAYS):
        return text
    variant = parsed_variant(text) if not text.lstrip().startswith("{") else None
    if variant is not None:
        base = policy_table(variant[0])
        return tempered_table(make_policy(base), variant[1])
    found = text_or_table(text)
    if isinstance(found, str) and "," in found:
        name, *changes = found.split(",")
        found = with_values(table_of(make_policy(name)), dict(map(_parameter, changes)))
    if isinstance(found, str) and found.endswith(SUFFIX):
        raise InputError(
            f"--policy is {found!r}, the file of a policy that is already learned: give the name "
            "of a policy (submax policies lists them)"
        )
    if isinstance(found, dict):
        found = {key: value for key, value in found.items() if key != "name"}
    # Refuse an unknown name before the log is read.
    make_policy(found)
    return found


def learnable(text: str) -> str | dict[str, Any]:
    """Return a policy to learn, checked: a table if it has parameters, otherwise its name.

    By their names, a policy and its variant are recognized, so that they learn together.
    """
    found = policy_table(text)
    return found if isinstance(text_or_table(text), dict) or "," in text else text


def _parameter(text: str) -> tuple[str, Any]:
    key, sign, value = text.partition("=")
    if not sign:
        raise InputError(
            f"a parameter of --policy is {text!r}, and must have the form KEY=VALUE, such as "
            "rcp-softmax-submax,estimator.hidden=64"
        )
    return key, read_value(value)


def label_of(text: str) -> str:
    """Return the name of a candidate: that inside its table, or the text itself."""
    table = text_or_table(text)
    return text if isinstance(table, str) else str(table.get("name", text))


def candidate_of(text: str, trust: bool) -> Candidate:
    """Return a policy by name, table or file, a variant of one, or the reward model."""
    if text.startswith(ALWAYS):
        return text
    variant = parsed_variant(text) if not text.lstrip().startswith("{") else None
    if variant is not None:
        return Sharpened(candidate_of(variant[0], trust), variant[1], text)
    if text == REWARD_MODEL or is_columns(text):
        return text
    if text.endswith(SUFFIX):
        return Learned.read(text, trust=trust)
    try:
        return policy_table(text)
    except InputError as error:
        if not str(error).startswith("unknown policy"):
            raise
        raise InputError(
            f"{error}; if {text!r} is an action of the log, {ALWAYS}{text} is the policy that "
            "always takes this action"
        ) from error


def combinations_of(texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the weights of each combination of rewards, such as ``profit=click:0.1,buy:20``.

    >>> combinations_of(["profit=click:0.1,buy:20"])
    {'profit': {'click': 0.1, 'buy': 20.0}}
    """
    found: dict[str, dict[str, float]] = {}
    for text in texts:
        name, sign, parts = text.partition("=")
        try:
            pairs = [one.rsplit(":", 1) for one in parts.split(",")]
            found[name] = {reward: float(weight) for reward, weight in pairs}
        except ValueError:
            sign = ""
        if not sign or not name or "/" in name:
            raise InputError(
                f"--combine is {text!r}, and must have the form NAME=REWARD:WEIGHT,REWARD:WEIGHT: "
                "give, for example, profit=click:0.1,buy:20"
            )
    return found


def is_columns(text: str) -> bool:
    """Return whether the probabilities of a policy are columns of the log; check the pattern."""
    if not text.startswith(COLUMNS):
        return False
    check_pattern(text.removeprefix(COLUMNS))
    return True


def text_or_table(text: str) -> str | dict[str, Any]:
    """Return text that begins with a brace as a table, read as JSON, and other text as it is."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        table: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise InputError(
            f"{text!r:.60} begins with a brace and is not valid JSON: {error}"
        ) from error
    return table


def common_schema(candidates: dict[str, Candidate]) -> Schema | None:
    """Return the schema of the candidates that are already learned; None if there are none."""
    learned = learned_among(candidates)
    schemas = [one.schema for one in learned.values()]
    if any(one != schemas[0] for one in schemas):
        raise InputError(
            f"the learned policies {', '.join(learned)} have different actions or contexts, and "
            "one log cannot have both: evaluate them one at a time"
        )
    return schemas[0] if schemas else None


def learned_among(candidates: dict[str, Candidate]) -> dict[str, Learned]:
    """Return the candidates that are learned policies, or variants of them."""
    bases = {
        name: one.base if isinstance(one, TargetPolicy) else one for name, one in candidates.items()
    }
    return {name: one for name, one in bases.items() if isinstance(one, Learned)}
