"""Learns one policy from a log."""

from collections.abc import Mapping
from typing import Any

from submax.core.checks import whole_number
from submax.core.policy import Policy
from submax.evaluation.logs.counted import expanded
from submax.evaluation.logs.log import By, Log
from submax.evaluation.targets.variant import parsed_variant
from submax.policies import make_policy
from submax.policies.greedy_regression import Tempered
from submax.policies.specification import table_of
from submax.schema.learned import MOST_ROWS, Learned, Origin

Specification = str | Mapping[str, Any] | Policy[Any]
"""A policy by name (also with a variant, ``linucb@greedy``), as a table, or as an object."""


def learn_one(
    log: Log,
    policy: Specification,
    *,
    share: float = 1.0,
    by: By = "time",
    seed: int = 0,
    keep_rows: int = MOST_ROWS,
) -> Learned:
    """Return one policy learned from a log, or from a ``share`` of its rows; see ``learn``."""
    whole_number("keep_rows", keep_rows, at_least=0)
    whole_number("seed", seed, at_least=0)
    policy = without_name(policy)
    made = policy if isinstance(policy, Policy) else make_policy(policy)
    part = expanded(log if share == 1.0 else log.split(share, by, seed)[0])
    if made.traits.needs_propensities:
        part = part.with_estimated_propensities(seed)
    origin = Origin(
        log=log.fingerprint,
        rows=len(part),
        log_rows=len(log),
        share=share,
        by=by,
        seed=seed,
        estimated_propensities=int(part.estimated.sum()),
    )
    return Learned.of(part.schema, policy, part.parts, origin, keep_rows)


def without_name(policy: Specification) -> Specification:
    """Return what ``make_policy`` accepts: no name for reports, and a variant as a table."""
    if isinstance(policy, Mapping):
        return {key: value for key, value in policy.items() if key != "name"}
    variant = parsed_variant(policy) if isinstance(policy, str) else None
    return policy if variant is None else tempered_table(make_policy(variant[0]), variant[1])


def tempered_table(policy: Policy[Any], temperature: float) -> dict[str, Any]:
    """Return the table of a variant of a policy that is sharper or softer."""
    return {"kind": "tempered", "policy": table_of(policy), "temperature": temperature}


def variant_of(learned: Learned, temperature: float) -> Learned:
    """Return the variant of a learned policy; nothing is learned again."""
    return learned._replace(
        policy=Tempered(learned.policy, temperature),
        specification=tempered_table(learned.policy, temperature),
    )
