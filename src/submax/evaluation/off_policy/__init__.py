"""Off-policy estimators, one in each file."""

from collections.abc import Mapping
from typing import Any

from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.core.registry import Registry
from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator

OFF_POLICY: Registry[OffPolicyEstimator] = Registry(
    "submax.evaluation.off_policy",
    OffPolicyEstimator,  # type: ignore[type-abstract]  # a contract is abstract
    "off-policy estimator",
    {
        "clipped-inverse-propensity": "submax.evaluation.off_policy.clipped_inverse_propensity:ClippedInversePropensity",
        "direct-method": "submax.evaluation.off_policy.direct_method:DirectMethod",
        "doubly-robust": "submax.evaluation.off_policy.doubly_robust:DoublyRobust",
        "inverse-propensity": "submax.evaluation.off_policy.inverse_propensity:InversePropensity",
        "marginalized-inverse-propensity": "submax.evaluation.off_policy.marginalized_inverse_propensity:MarginalizedInversePropensity",
        "per-decision": "submax.evaluation.off_policy.per_decision:PerDecision",
        "pseudo-inverse": "submax.evaluation.off_policy.pseudo_inverse:PseudoInverse",
        "replay": "submax.evaluation.off_policy.replay:Replay",
        "self-normalized": "submax.evaluation.off_policy.self_normalized:SelfNormalized",
        "self-normalized-doubly-robust": "submax.evaluation.off_policy.self_normalized_doubly_robust:SelfNormalizedDoublyRobust",
        "shrunk-doubly-robust": "submax.evaluation.off_policy.shrunk_doubly_robust:ShrunkDoublyRobust",
        "switch-doubly-robust": "submax.evaluation.off_policy.switch_doubly_robust:SwitchDoublyRobust",
        "trajectory": "submax.evaluation.off_policy.trajectory:Trajectory",
    },
)


def off_policy_estimators() -> dict[str, type[OffPolicyEstimator]]:
    """Return the classes of all off-policy estimators by their short names."""
    return {one.short: one for one in OFF_POLICY.classes()}


def make_off_policy(specification: str | Mapping[str, Any]) -> OffPolicyEstimator:
    """Make an estimator from its short name, its name, or a table with ``kind`` and parameters.

    >>> make_off_policy("snips")
    SelfNormalized()
    >>> make_off_policy({"kind": "clipped", "threshold": 10})
    ClippedInversePropensity(threshold=10.0, tuning='error')
    """
    table = {"kind": specification} if isinstance(specification, str) else specification
    if not isinstance(table, Mapping):
        raise InputError(
            f"the off-policy estimator is {specification!r}, and must be a name such as 'dr' or a "
            "table with 'kind' and parameters"
        )
    names = dict(zip(off_policy_estimators(), OFF_POLICY.names(), strict=True))
    kind = table.get("kind")
    if isinstance(kind, str) and ":" not in kind:
        one_of("off-policy estimator", kind, {*names, *names.values()})
        kind = names.get(kind, kind)
    return OFF_POLICY.build({**table, "kind": kind}, {})
