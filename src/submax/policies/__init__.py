"""Policies, one a file; each file also declares the presets that carry a name."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from submax.core.checks import one_of
from submax.core.contracts.policy import Policy
from submax.core.errors import InputError
from submax.core.folder import Folder
from submax.estimators import ESTIMATORS
from submax.strategies import STRATEGIES

POLICIES: Folder[Policy[Any]] = Folder("submax.policies", Policy, "policy")  # type: ignore[type-abstract]  # a contract is abstract


def presets() -> dict[str, Policy[Any]]:
    """All named policies."""
    return dict(_presets())


@cache
def _presets() -> dict[str, Policy[Any]]:
    """The same, found once in a process: classes are imported for it."""
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
        raise InputError(f"a policy is a name or a table with a 'kind', not {specification!r}")
    kind = specification.get("kind")
    if kind in set(presets()) - set(POLICIES.names()):
        raise InputError(f"{kind!r} is the name of a policy and not a kind: give the name alone")
    parts: dict[str, Folder[Any]] = {
        "estimator": ESTIMATORS,
        "strategy": STRATEGIES,
        "policy": POLICIES,
    }
    return POLICIES.build(specification, parts)


def __getattr__(name: str) -> Any:
    return POLICIES.exported(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *(found.__name__ for found in POLICIES.classes())])
