"""Policies, one a file; each file also declares the presets that carry a name."""

import dataclasses
import sys
from collections.abc import Mapping
from typing import Any

from submax.core.checks import one_of
from submax.core.errors import InvalidValue
from submax.core.estimator import Estimator
from submax.core.folder import Folder
from submax.core.policy import Policy
from submax.core.strategy import Strategy
from submax.estimators import ESTIMATORS
from submax.strategies import STRATEGIES

POLICIES: Folder[Policy[Any]] = Folder("submax.policies", Policy, "policy")  # type: ignore[type-abstract]  # a contract is abstract


def presets() -> dict[str, Policy[Any]]:
    """All named policies."""
    return {name: policy for kind in POLICIES.classes() for name, policy in kind.presets().items()}


def make_policy(specification: str | Mapping[str, Any]) -> Policy[Any]:
    """A policy from the name of a preset, or from a table with ``kind`` and its parameters.

    >>> make_policy("thompson-1-9")
    Thompson(alpha=1.0, beta=9.0)
    >>> make_policy({"kind": "epsilon-greedy", "epsilon": 0.3})
    EpsilonGreedy(epsilon=0.3)
    """
    if isinstance(specification, str):
        named = presets()
        one_of("policy", specification, named)
        return named[specification]
    if not isinstance(specification, Mapping):
        raise InvalidValue(f"a policy is a name or a table with a 'kind', not {specification!r}")
    parts: dict[str, Folder[Any]] = {
        "estimator": ESTIMATORS,
        "strategy": STRATEGIES,
        "policy": POLICIES,
    }
    return POLICIES.build(specification, parts)


def table_of(policy: Any) -> dict[str, Any]:
    """The table that ``make_policy`` makes a policy from.

    >>> table_of(make_policy("thompson-1-9"))
    {'kind': 'thompson', 'alpha': 1.0, 'beta': 9.0}
    """
    fields = {field.name: getattr(policy, field.name) for field in dataclasses.fields(policy)}
    return {"kind": _kind(policy), **{name: _plain(value) for name, value in fields.items()}}


def _kind(part: object) -> str:
    module, name = type(part).__module__, type(part).__name__
    if module.startswith("submax."):
        return module.rpartition(".")[2].replace("_", "-")
    return f"{sys.modules[module].__file__}:{name}"


def _plain(value: Any) -> Any:
    if isinstance(value, (Policy, Estimator, Strategy)):
        return table_of(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return list(value) if isinstance(value, tuple) else value
