"""Policies as tables of their parameters."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from submax.core.conditioning.estimator import Estimator
from submax.core.conditioning.strategy import Strategy
from submax.core.contracts.policy import Policy
from submax.core.errors import InputError
from submax.core.registry import Registry
from submax.estimators import ESTIMATORS
from submax.policies import POLICIES
from submax.strategies import STRATEGIES

REGISTRIES: dict[type, Registry[Any]] = {
    Policy: POLICIES,
    Estimator: ESTIMATORS,
    Strategy: STRATEGIES,
}
"""The registry of each contract whose classes can be part of a policy."""


def table_of(policy: Any, *, changed_only: bool = False) -> dict[str, Any]:
    """The table from which ``make_policy`` makes a policy: its kind and its parameters.

    With ``changed_only`` parameters that have their default are left out.

    >>> from submax.policies import make_policy
    >>> table_of(make_policy("thompson-1-9"))
    {'kind': 'thompson', 'alpha': 1.0, 'beta': 9.0}
    """
    values = {field: getattr(policy, field.name) for field in dataclasses.fields(policy)}
    return {
        "kind": _kind(policy),
        **{
            field.name: _plain(value, changed_only)
            for field, value in values.items()
            if not (changed_only and _is_default(field, value))
        },
    }


def with_values(table: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A table with some parameters changed; a parameter of a part is named by its path.

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
    """Refuse a path that does not lead to a parameter."""
    for key in path.split("."):
        here = sorted(table) if isinstance(table, Mapping) else []
        if key not in here:
            known = ", ".join(one for one in here if one != "kind") or "none"
            raise InputError(f"the policy has no parameter {path!r}: give one of: {known}")
        table = table[key]


def read_value(text: str) -> Any:
    """The number or truth value that a text of the command line stands for, or the text itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


def _kind(part: object) -> str:
    folder = next(folder for contract, folder in REGISTRIES.items() if isinstance(part, contract))
    kind = folder.kind_of(type(part))
    if kind is None:
        raise InputError(
            f"the class {type(part).__qualname__} cannot be imported by a name, so that no table "
            "can describe it: define it at the top of a module or file that can be imported"
        )
    return kind


def _is_default(field: "dataclasses.Field[Any]", value: Any) -> bool:
    default = field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    return type(value) is type(default) and bool(value == default)


def _plain(value: Any, changed_only: bool) -> Any:
    if isinstance(value, tuple(REGISTRIES)):
        return table_of(value, changed_only=changed_only)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return list(value) if isinstance(value, tuple) else value
