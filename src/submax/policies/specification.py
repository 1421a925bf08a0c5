"""A policy in plain data: what Python, TOML, HTTP and the store have in common."""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Self

import msgspec

from submax.core.conditioning import Estimator, Strategy
from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.core.registry import Registry
from submax.estimators import ESTIMATORS
from submax.policies import POLICIES, make_policy, no_policy
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
    >>> table_of(make_policy("epsilon-greedy-0.2"))
    {'kind': 'epsilon-greedy', 'epsilon': 0.2}
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
        key, _, rest = path.partition(".")
        if key not in changed or (rest and not isinstance(changed[key], Mapping)):
            known = ", ".join(one for one in sorted(table) if one != "kind") or "none"
            raise InputError(f"the policy has no parameter {path!r}: give one of: {known}")
        changed[key] = with_values(changed[key], {rest: value}) if rest else value
    return changed


def read_value(text: str) -> Any:
    """The number or truth value that a text of the command line stands for, or the text itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


def _kind(part: object) -> str:
    registries = (one for contract, one in REGISTRIES.items() if isinstance(part, contract))
    kind = next(registries).kind_of(type(part))
    if kind is None:
        raise InputError(
            f"the class {type(part).__qualname__} cannot be imported by a name, so no table "
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
    if isinstance(value, tuple):
        return [_plain(one, changed_only) for one in value]
    return value


PARTS = ("policy", "estimator", "strategy")
"""The parameters of policies that are policies, estimators and strategies themselves."""
OBJECT = "object"
"""The kind of a policy object that no table can describe."""
ADDRESSED = re.compile(r"<([\w.]+)[^<>]* at 0x[0-9a-f]+[^<>]*>")
"""The text of an object with its address, which differs between processes, and perhaps its state,
which may change: only the name of its class counts."""


@dataclass(frozen=True)
class PolicySpecification:
    """What a policy is, in ``data`` that files can hold.

    ``data`` is the name of a preset, a class of the user's own such as ``my_policy.py:MyPolicy``,
    or a table with ``kind`` and the parameters; a table may have a ``name`` under which results
    show the policy. The kind ``object`` only describes the class and parameters of an object that
    no table can make again, so the object must be passed again.

    >>> from submax.policies import Thompson
    >>> PolicySpecification.of(Thompson(beta=9.0))
    PolicySpecification(data={'kind': 'thompson', 'beta': 9.0})
    >>> PolicySpecification.of("ucb1").build()
    UCB1(pending=False, exploration=2.0)
    """

    data: str | dict[str, Any]

    @classmethod
    def of(cls, policy: object) -> Self:
        if isinstance(policy, cls):
            return policy
        if isinstance(policy, Policy):
            return cls(_table(policy) or _description(policy))
        if isinstance(policy, str):
            return cls(policy)
        if isinstance(policy, Mapping):
            return cls({key: _written(value) for key, value in policy.items()})
        raise no_policy(policy)

    @property
    def is_object(self) -> bool:
        return isinstance(self.data, dict) and self.data.get("kind") == OBJECT

    @property
    def label(self) -> str:
        """A short name for tables and figures: its own name, that of the preset, or its kind.

        >>> PolicySpecification("experiments/greedy.py:Greedy").label
        'greedy.py:Greedy'
        """
        data = {"kind": self.data} if isinstance(self.data, str) else self.data
        found = str(data.get("name", data.get("class", data.get("kind"))))
        return PurePath(found).name if ".py:" in found else found

    @property
    def title(self) -> str:
        """A short name for a heading: the label without folders and modules, and the main parts.

        >>> PolicySpecification({"kind": "gridded", "policy": "thompson-1-9"}).title
        'gridded (thompson-1-9)'
        """
        return _title(self.data)

    def build(self, given: Policy[Any] | None = None) -> Policy[Any]:
        """The policy; ``given`` is the object from which the specification was made, if any."""
        if given is not None and PolicySpecification.of(given) == self:
            return given
        if isinstance(self.data, str):
            return make_policy(self.data)
        if self.is_object:
            settings = self.data.get("settings", {}).items()
            shown = ", ".join(f"{name}={value:.40}" for name, value in settings)
            other = "" if given is None else f", and another one was given, {given!r:.80}"
            raise InputError(
                f"this bandit was declared with a policy object, {self.data.get('class')}({shown})"
                f"{other}: give it again, policy=..., or declare one whose class is in a file, "
                "{'kind': 'my_policy.py:MyPolicy'}"
            )
        return make_policy({key: value for key, value in self.data.items() if key != "name"})


def _table(policy: Policy[Any]) -> dict[str, Any] | None:
    """The table of a policy, if ``make_policy`` makes an equal policy from it; else None."""
    try:
        table = table_of(policy, changed_only=True)
        plain: dict[str, Any] = msgspec.msgpack.decode(msgspec.msgpack.encode(table))
        return plain if bool(make_policy(plain) == policy) else None
    except Exception:
        # User code may raise anything; treat the object as not serializable.
        return None


def _written(value: Any) -> Any:
    """A value of a table, in which parts that are objects are replaced by their tables."""
    if isinstance(value, Mapping):
        return {key: _written(one) for key, one in value.items()}
    if isinstance(value, Policy):
        table = _table(value)
        if table is None:
            raise InputError(
                f"the policy {value!r:.80} inside a table cannot be written down: give the whole "
                "policy as an object, or name its class, {'kind': 'my_policy.py:MyPolicy'}"
            )
        return table
    if isinstance(value, (Estimator, Strategy)):
        return table_of(value, changed_only=True)
    return value


def _title(data: str | Mapping[str, Any]) -> str:
    if isinstance(data, str):
        # Of a class in a file or a module, package.module:MyPolicy, the name of the class.
        return data.rpartition(":")[2]
    if "class" in data:
        return str(data["class"]).rpartition(".")[2]
    inside = ", ".join(_title(data[part]) for part in PARTS if data.get(part))
    named = str(data.get("name", _title(str(data.get("kind")))))
    return f"{named} ({inside})" if inside else named


def _description(policy: Policy[Any]) -> dict[str, Any]:
    """The class and the parameters of an object, by which an equal object is recognized."""
    if dataclasses.is_dataclass(policy):
        values = {field.name: getattr(policy, field.name) for field in dataclasses.fields(policy)}
    else:
        values = vars(policy)
    settings = {name: ADDRESSED.sub(r"<\1>", repr(value)) for name, value in values.items()}
    kind = type(policy)
    return {"kind": OBJECT, "class": f"{kind.__module__}.{kind.__qualname__}", "settings": settings}
