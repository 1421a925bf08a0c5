"""Policies, one in each file, which also declares its named presets."""

import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

from submax.core.checks import did_you_mean, one_of
from submax.core.contracts.policy import Policy
from submax.core.errors import InputError
from submax.core.folder import Folder, PluginWarning
from submax.core.folder import classes_within as _classes_within
from submax.estimators import ESTIMATORS
from submax.strategies import STRATEGIES

POLICIES: Folder[Policy[Any]] = Folder("submax.policies", Policy, "policy")  # type: ignore[type-abstract]  # a contract is abstract


def presets() -> dict[str, Policy[Any]]:
    """All policies that have a name, by name."""
    return dict(_presets())


@cache
def _presets() -> dict[str, Policy[Any]]:
    """The presets of all classes, collected once in a process, since it imports all of them."""
    found: dict[str, Policy[Any]] = {}
    for kind in POLICIES.classes():
        for name, policy in kind.presets().items():
            if name in found:
                warnings.warn(
                    f"{kind.__module__}:{kind.__qualname__} declares the preset {name!r}, which is "
                    "declared already, so that the earlier one is used: rename the preset",
                    PluginWarning,
                    stacklevel=2,
                )
            found.setdefault(name, policy)
    return found


def _preset_by_file(name: str) -> Policy[Any] | None:
    """The preset of this name, if the name contains that of the policy's file; None otherwise.

    To import all policies takes as long as to import NumPy and all the rest. No two built-in
    policies declare the same preset, so that ``presets`` has the same one.
    """
    named = (kind.presets() for kind in _classes_within(POLICIES, name))
    return next((found[name] for found in named if name in found), None)


def make_policy(specification: str | Mapping[str, Any]) -> Policy[Any]:
    """A policy from the name of a preset, or from a table with ``kind`` and its parameters.

    A class of the user's own is named ``my_policy.py:MyPolicy`` or ``package.module:MyPolicy``, as
    ``kind`` of a table, or alone if all its parameters have defaults. Where a table needs another
    policy, it can have the name of a preset.

    >>> make_policy("thompson-1-9")
    Thompson(alpha=1.0, beta=9.0)
    >>> make_policy({"kind": "epsilon-greedy", "epsilon": 0.3})
    EpsilonGreedy(epsilon=0.3)
    >>> make_policy({"kind": "gridded", "policy": "thompson-1-9"}).policy
    Thompson(alpha=1.0, beta=9.0)
    """
    if isinstance(specification, str) and ":" in specification:
        return make_policy({"kind": specification})
    if isinstance(specification, str):
        if (found := _preset_by_file(specification)) is not None:
            return found
        named = presets()
        if specification in POLICIES.names() and specification not in named:
            raise InputError(
                f"{specification!r} is a kind of policy, and not a name that includes its "
                f"parameters: {did_you_mean(specification, named, count=3)}else give a table, "
                f"{{'kind': {specification!r}, …}}"
            )
        one_of("policy", specification, named, listed_by="which `submax policies` lists")
        return named[specification]
    if isinstance(specification, type):
        raise InputError(
            f"the class {specification.__name__} was given, and a policy is an instance, a name or "
            f"a table: give {specification.__name__}(...)"
        )
    if not isinstance(specification, Mapping):
        raise InputError(
            f"a policy is a name or a table with a 'kind', not {specification!r:.80}: give one of "
            "these, such as 'rcp-adaptive'"
        )
    kind = specification.get("kind")
    # A kind that is found by its name does not need the presets, which import every policy.
    unknown = isinstance(kind, str) and ":" not in kind and not POLICIES.knows(kind)
    if unknown and kind in presets():
        raise InputError(f"{kind!r} is the name of a policy and not a kind: give the name alone")
    parts: dict[str, Folder[Any]] = {
        "estimator": ESTIMATORS,
        "strategy": STRATEGIES,
        "policy": POLICIES,
    }
    return POLICIES.build(_with_presets(specification), parts)


def _with_presets(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table in which the names of presets under ``policy`` are replaced by the policies."""
    changed = dict(table)
    for key, value in table.items():
        if isinstance(value, Mapping):
            changed[key] = _with_presets(value)
        elif key == "policy" and isinstance(value, str):
            changed[key] = presets().get(value, value)
    return changed


def __getattr__(name: str) -> Any:
    return POLICIES.exported(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *(found.__name__ for found in POLICIES.classes())])
