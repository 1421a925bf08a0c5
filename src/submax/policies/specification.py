"""A policy in plain data: what Python, TOML, HTTP, the store and the command line have in common.

A policy is the name of a preset, a text with parameters and a variant, or a table.
"""

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from itertools import product
from pathlib import PurePath
from typing import Any, Self

import msgspec
import numpy as np

from submax.core.checks import did_you_mean, one_of, whole_number
from submax.core.conditioning import Estimator, Strategy
from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.policies.presets import PRESETS
from submax.policies.registry import PARTS, POLICIES

Specification = str | Mapping[str, Any] | Policy[Any]
"""A policy by name, as a text with parameters, as a table, or as an object."""


def presets() -> dict[str, Policy[Any]]:
    """All policies that have a name, by name."""
    return {name: make_policy(name) for name in preset_tables()}


@cache
def preset_tables() -> dict[str, Mapping[str, Any]]:
    """The kind and the parameters of every preset.

    An installed package can add presets by an entry point of the group ``submax.presets``, which
    names a dictionary like `PRESETS`. The name of a built-in preset stays with the built-in one.
    """
    tables: dict[str, Mapping[str, Any]] = {}
    for entry in entry_points(group="submax.presets"):
        tables |= entry.load()
    return {**tables, **PRESETS}


def make_policy(specification: Specification) -> Policy[Any]:
    """A policy from a name, a text, or a table with ``kind`` and its parameters.

    Parameters follow a name, ``linear-thompson,width=0.5``, also those of a part,
    ``rcp-softmax-submax,estimator.hidden=64``. A variant comes last: ``linucb@greedy`` takes the
    most likely action of ``linucb``, and ``linucb@temperature=0.5`` is sharper.

    A class of the user's own is named ``my_policy.py:MyPolicy`` or ``package.module:MyPolicy``, as
    ``kind`` of a table, or alone if all its parameters have defaults. Where a table needs another
    policy, it can have such a text. The ``name`` of a table is not a parameter. A policy that is
    already made is returned.

    >>> make_policy("thompson-1-9")
    Thompson(alpha=1.0, beta=9.0, memory=Memory(window=None, reservoir=None, discount=1.0))
    >>> make_policy("epsilon-greedy-0.1,epsilon=0.3")
    EpsilonGreedy(epsilon=0.3)
    >>> make_policy({"kind": "gridded", "policy": "ucb1"}).policy
    UCB1(pending=False, exploration=2.0)
    """
    if isinstance(specification, Policy):
        return specification
    if isinstance(specification, str):
        specification = _expanded(specification)
    if isinstance(specification, str):
        specification = _table_of_name(specification)
    if not isinstance(specification, Mapping):
        raise no_policy(specification)
    kind = specification.get("kind")
    if isinstance(kind, str) and kind in preset_tables() and not POLICIES.knows(kind):
        raise InputError(f"{kind!r} is the name of a policy, not a kind: give the name alone")
    table = {key: value for key, value in specification.items() if key != "name"}
    return POLICIES.build(_resolved(table), PARTS)


def no_policy(given: object) -> InputError:
    """The error about something that is neither a name nor a table nor an instance."""
    if isinstance(given, type):
        return InputError(f"policy is the class {given.__name__}: give {given.__name__}(...)")
    return InputError(
        f"policy is {given!r:.80}, but must be a name such as 'rcp-adaptive', a table with a "
        "'kind', or a Policy"
    )


def _table_of_name(name: str) -> Mapping[str, Any]:
    if ":" in name:
        return {"kind": name}
    named = preset_tables()
    if POLICIES.knows(name) and name not in named:
        hint = did_you_mean(name, named, count=3)
        raise InputError(
            f"{name!r} is a kind of policy, not a name: {hint}{'Otherwise ' if hint else ''}give a "
            f'table with its parameters, {{"kind": "{name}"}}'
        )
    one_of("policy", name, named, listed_by="see `submax policies`")
    return named[name]


def _resolved(value: Any, key: str = "") -> Any:
    """A value of a table in which policies given by name or text are replaced by their tables."""
    if key == "policy" and isinstance(value, str):
        value = _expanded(value)
        # It may also be a kind, whose parameters all have defaults.
        value = preset_tables().get(value, value) if isinstance(value, str) else value
    if isinstance(value, Mapping):
        return {name: _resolved(one, name) for name, one in value.items()}
    return value


# Texts

GREEDY, TEMPERATURE = "greedy", "temperature="
"""The variants of a policy: ``linucb@greedy`` and ``linucb@temperature=0.5``."""


def _divided(text: str, sign: str) -> list[str]:
    """The parts of a text between signs; folders of a file may have the sign in their names."""
    before_values = text.partition("=")[0]
    file = max(map(before_values.rfind, "/\\")) + 1
    first, *others = text[file:].split(sign)
    return [text[:file] + first, *others]


def parsed_variant(text: str) -> tuple[str, float | None]:
    """The policy and the temperature of a text such as ``linucb@greedy``.

    >>> parsed_variant("linucb@greedy"), parsed_variant("linucb")
    (('linucb', 0.0), ('linucb', None))
    """
    policy, *after = _divided(text, "@")
    if not after:
        return policy, None
    variant = "@".join(after)
    try:
        return policy, 0.0 if variant == GREEDY else float(variant.removeprefix(TEMPERATURE))
    except ValueError:
        raise InputError(
            f"the variant of the policy {text!r} is {variant!r}: write {policy}@{GREEDY}, or a "
            f"number as in {policy}@{TEMPERATURE}0.5",
            parameter="policy",
        ) from None


def _expanded(text: str) -> str | dict[str, Any]:
    """The table of a text with parameters or a variant; a name alone stays a name.

    The code of a class of the user's own is not run.
    """
    policy, temperature = parsed_variant(text)
    name, *changes = _divided(policy, ",")
    pairs = [one.partition("=") for one in changes]
    if not all(key and sign for key, sign, _ in pairs):
        raise InputError(
            f"the parameters of the policy {text!r} must be KEY=VALUE: write them such as "
            "rcp-softmax-submax,estimator.hidden=64",
            parameter="policy",
        )
    if not changes and temperature is None:
        return name
    # A parameter of a part can only be changed if the table has the whole part.
    whole = {"kind": name} if ":" in name else table_of(make_policy(name))
    values = {key: read_value(value) for key, _, value in pairs}
    found = with_values(whole, values) if values else name
    if temperature is not None:
        return tempered_table(found, temperature)
    return found


def tempered_table(policy: str | Mapping[str, Any], temperature: float) -> dict[str, Any]:
    """The table of a variant of a policy that is sharper or softer."""
    return {"kind": "tempered", "policy": policy, "temperature": temperature}


def read_value(text: str) -> Any:
    """The number or truth value that a text of the command line stands for, or the text itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text, text)


def with_values(table: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A table with some parameters changed; a parameter of a part is named by its path.

    >>> with_values({"kind": "x", "estimator": {"hidden": 8}}, {"estimator.hidden": 16})
    {'kind': 'x', 'estimator': {'hidden': 16}}
    """
    changed = dict(table)
    for path, value in values.items():
        key, _, rest = path.partition(".")
        part = changed.get(key)
        inside = part if isinstance(part, Mapping) else {}
        changed[key] = with_values(inside, {rest: value}) if rest else value
    return changed


# Searches

LOGARITHMIC = ":log"
"""The ending of a range that is searched on a logarithmic scale."""
Search = Mapping[str, str | Sequence[Any]]
"""For each parameter, such as ``estimator.hidden``, the values to try: a list, also as a text
``16,32``, or a range ``0.1..10``, on a logarithmic scale if it ends in ``:log``."""


def variants(policy: Specification, search: Search, trials: int, seed: int) -> list[dict[str, Any]]:
    """Tables of a policy with other parameters: all if lists have few, else random ones.

    >>> [one["name"] for one in variants("epsilon-greedy-0.1", {"epsilon": "0.1,0.2"}, 20, 0)]
    ['epsilon=0.1', 'epsilon=0.2']
    """
    whole_number("trials", trials, at_least=1)
    if not search:
        raise InputError(
            "search is empty: name at least one parameter with a range or a list of values to try",
            parameter="search",
        )
    rng, base = np.random.default_rng(seed), table_of(make_policy(policy))
    values = {key: _values(key, wanted, trials, rng) for key, wanted in search.items()}
    for key, several in values.items():
        for value in several:
            make_policy(with_values(base, {key: value}))
    if math.prod(map(len, values.values())) <= trials:
        drawn = list(product(*values.values()))
    else:
        # Every value is tried, about equally often.
        columns = [
            [one[place] for place in rng.permutation(np.resize(np.arange(len(one)), trials))]
            for one in values.values()
        ]
        drawn = list(zip(*columns, strict=True))
    found = {}
    for row in drawn:
        changes = dict(zip(values, row, strict=True))
        name = ",".join(f"{key}={value}" for key, value in changes.items())
        found[name] = {"name": name, **with_values(base, changes)}
    return list(found.values())


def _values(key: str, wanted: str | Sequence[Any], trials: int, rng: Any) -> list[Any]:
    """The values of a list, or as many random ones of a range as there are trials."""
    text = wanted if isinstance(wanted, str) else ""
    plain = text.removesuffix(LOGARITHMIC)
    scale, inverse = (float, np.asarray) if plain == text else (math.log, np.exp)
    try:
        if ".." not in plain:
            return [read_value(one) for one in text.split(",")] if text else list(wanted)
        low, high = (read_value(one) for one in plain.split("..", 1))
        ends = scale(low), scale(high)
        if not -math.inf < ends[0] < ends[1] < math.inf:
            raise ValueError("these ends are not possible")
        drawn = inverse(rng.uniform(*ends, trials))
        if isinstance(low, int) and isinstance(high, int):
            return sorted({int(one) for one in np.round(drawn)})
        return [float(f"{one:.4g}") for one in drawn]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the search for {key!r} is {wanted!r} ({error}): give a list of values, or a "
            f"range LOW..HIGH with LOW below HIGH, and above 0 if it ends in {LOGARITHMIC}",
            parameter="search",
        ) from error


# Objects


def table_of(policy: Any, *, changed_only: bool = False) -> dict[str, Any]:
    """The table from which ``make_policy`` makes a policy: its kind and its parameters.

    With ``changed_only`` parameters that have their default are left out.

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


def _kind(part: object) -> str:
    registries = (one for one in PARTS.values() if isinstance(part, one.contract))
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
    if isinstance(value, (Policy, Estimator, Strategy)):
        return table_of(value, changed_only=changed_only)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, tuple):
        return [_plain(one, changed_only) for one in value]
    return value


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
    show the policy. A text with parameters or a variant becomes such a table. The kind ``object``
    only describes the class and parameters of an object that no table can make again, so the object
    must be passed again.

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
            found = _expanded(policy)
            return cls(found if isinstance(found, str) else {"name": policy, **found})
        if isinstance(policy, Mapping):
            return cls(_written(policy))
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
        return self.label if "name" in self.data else _title(self.data)

    @property
    def text(self) -> str | dict[str, Any]:
        """The text that stands for the policy, if it was made from one; otherwise its table.

        >>> PolicySpecification.of("linucb@greedy").text
        'linucb@greedy'
        """
        with suppress(InputError):
            if self.of(self.label) == self:
                return self.label
        return self.data

    def build(self, given: Policy[Any] | None = None) -> Policy[Any]:
        """The policy; ``given`` is the object from which the specification was made, if any."""
        if given is not None and PolicySpecification.of(given) == self:
            return given
        if isinstance(self.data, dict) and self.is_object:
            settings = self.data.get("settings", {}).items()
            shown = ", ".join(f"{name}={value:.40}" for name, value in settings)
            other = "" if given is None else f", and another one was given, {given!r:.80}"
            raise InputError(
                f"this bandit was declared with a policy object, {self.data.get('class')}({shown})"
                f"{other}: give it again, policy=..., or declare one whose class is in a file, "
                "{'kind': 'my_policy.py:MyPolicy'}"
            )
        return make_policy(self.data)


def _table(policy: Policy[Any]) -> dict[str, Any] | None:
    """The table of a policy, if ``make_policy`` makes an equal policy from it; else None."""
    try:
        table = table_of(policy, changed_only=True)
        plain: dict[str, Any] = msgspec.msgpack.decode(msgspec.msgpack.encode(table))
        return plain if bool(make_policy(plain) == policy) else None
    except Exception:
        # User code may raise anything; treat the object as not serializable.
        return None


def _written(value: Any, key: str = "") -> Any:
    """A value of a table, in which parts that are objects or texts are replaced by their tables."""
    if isinstance(value, Mapping):
        return {name: _written(one, name) for name, one in value.items()}
    if key == "policy" and isinstance(value, str):
        return _expanded(value)
    if isinstance(value, Policy):
        table = _table(value)
        if table is None:
            raise InputError(
                f"the policy {value!r:.80} inside a table cannot be stored: give the whole policy "
                "as an object, or name its class, {'kind': 'my_policy.py:MyPolicy'}"
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
    parts = ("policy", "estimator", "strategy")
    inside = ", ".join(_title(data[part]) for part in parts if data.get(part))
    kind = _title(str(data.get("kind")))
    return f"{kind} ({inside})" if inside else kind


def _description(policy: Policy[Any]) -> dict[str, Any]:
    """The class and the parameters of an object, by which an equal object is recognized."""
    if dataclasses.is_dataclass(policy):
        values = {field.name: getattr(policy, field.name) for field in dataclasses.fields(policy)}
    else:
        values = vars(policy)
    settings = {name: ADDRESSED.sub(r"<\1>", repr(value)) for name, value in values.items()}
    kind = type(policy)
    return {"kind": OBJECT, "class": f"{kind.__module__}.{kind.__qualname__}", "settings": settings}
