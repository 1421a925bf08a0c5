"""Policies as tables of their parameters."""

import dataclasses
import sys
from collections.abc import Mapping
from typing import Any

from submax.core.conditioning.estimator import Estimator
from submax.core.conditioning.strategy import Strategy
from submax.core.contracts.policy import Policy
from submax.core.errors import InputError


def table_of(policy: Any) -> dict[str, Any]:
    """The table that ``make_policy`` makes a policy from.

    >>> from submax.policies import make_policy
    >>> table_of(make_policy("thompson-1-9"))
    {'kind': 'thompson', 'alpha': 1.0, 'beta': 9.0}
    """
    fields = {field.name: getattr(policy, field.name) for field in dataclasses.fields(policy)}
    return {"kind": _kind(policy), **{name: _plain(value) for name, value in fields.items()}}


def with_values(table: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A table with some parameters changed, those of a part by their path.

    >>> with_values({"kind": "x", "estimator": {"hidden": 8}}, {"estimator.hidden": 16})
    {'kind': 'x', 'estimator': {'hidden': 16}}
    """
    changed = dict(table)
    for path, value in values.items():
        check_parameter(table, path)
        key, _, rest = path.partition(".")
        changed[key] = with_values(changed[key], {rest: value}) if rest else value
    return changed


def check_parameter(table: Mapping[str, Any], path: str) -> None:
    """Refuse a path that leads to no parameter."""
    for key in path.split("."):
        here = sorted(table) if isinstance(table, Mapping) else []
        if key not in here:
            known = ", ".join(one for one in here if one != "kind") or "none"
            raise InputError(f"the policy has no parameter {path!r}; here: {known}")
        table = table[key]


def read_value(text: str) -> Any:
    """A number, a truth value, or the text itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


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
