"""An experiment in a TOML file, and its cells: one policy in one configuration each."""

import dataclasses
import hashlib
import itertools
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

import msgspec

from submax._version import __version__
from submax.core.checks import one_of, whole_number
from submax.core.environment import Environment
from submax.core.errors import InputError
from submax.core.registry import Registry, converted
from submax.environments import ENVIRONMENTS
from submax.environments.tables import ENDINGS
from submax.policies.specification import PolicySpecification, make_policy
from submax.simulation import DELAYS

EXPERIMENTS = resources.files("submax.simulation") / "experiments"
"""The folder of the experiments that come with submax, with one folder for each group."""
GROUPS = {"all": "paper", "beyond": "beyond", "bakeoff": "bakeoff", "rivals": "rivals"}
"""The folder of each group of experiments."""
PAPER_ORDER = [
    *("illustration", "bernoulli", "contextual", "contextual-wide", "contextual-disjoint"),
    "combinatorial",
]
"""The order of the paper's sections; its other experiments follow."""
QUICK_REPLICAS = 10
"""The most replicas of a quick look whose specification gives no other number."""
MERGED = ("environment", "delay", "quick", "define")
"""The tables whose keys a file with ``extends`` replaces one by one."""
EXAMPLES = {
    "observations": "such as observations = 5000",
    "environment": 'such as [environment] with kind = "bernoulli" and arms = 10',
    "policies": 'such as policies = ["random", "rcp-submax"]',
}
"""How the required keys are written."""
Labels: TypeAlias = dict[str, Any]
"""The columns of a result that describe its configuration, by name."""
PolicyData: TypeAlias = str | dict[str, Any]
"""The name of a preset, or a table with a ``kind`` and parameters."""


class Specification(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment: a sweep of configurations × policies, the paper's illustration, or logs.

    In ``environment`` and ``delay`` a list stands for several configurations, also a list of
    kinds. Environments with different keys are several tables, ``[[environment]]``. A policy is the
    name of a preset, or a table with its ``kind``, its parameters and, optionally, a ``name`` for
    the results. ``define`` has tables by name; ``"$name"`` in ``policies`` or ``quick`` is replaced
    by the table. ``more_policies`` are only run if they are asked for, by ``--all`` or ``--only
    policy=NAME``. ``quick`` has values that replace those of the experiment in a quick look.

    Every configuration is simulated in ``replicas`` worlds for ``observations`` decisions; curves
    are stored at ``points`` of them. ``measure`` is what the tables and figures show first.
    Figures vary one value at a time around the configuration ``reference``. ``statements`` is the
    section of the paper whose statements are tested on the results.

    A file that begins with ``extends``, the name of an experiment that comes with submax, has only
    what differs from that experiment. The keys of ``environment``, ``delay``, ``quick`` and
    ``define`` are replaced one by one, other values as a whole.
    """

    name: str
    experiment: Literal["sweep", "illustration", "offline"] = "sweep"
    title: str = ""
    measure: Literal["regret", "reward"] = "regret"
    reference: dict[str, Any] = {}
    statements: Literal["", "section 4.1", "section 4.2", "section 4.3", "ablations"] = ""
    observations: int
    replicas: int = 100
    seed: int = 0
    points: int = 500
    environment: dict[str, Any] | list[dict[str, Any]]
    delay: dict[str, Any] = msgspec.field(
        default_factory=lambda: {"kind": "batched-rewards", "size": 1}
    )
    policies: list[PolicyData]
    more_policies: list[PolicyData] = []
    quick: dict[str, Any] = {}
    define: dict[str, Any] = {}

    def __post_init__(self) -> None:
        whole_number("observations", self.observations, at_least=1, at_most=10**9)
        whole_number("replicas", self.replicas, at_least=1, at_most=10**6)
        whole_number("seed", self.seed, at_least=0)
        whole_number("points", self.points, at_least=1)
        for key in self.quick:
            one_of("key of quick:", key, ["replicas", "observations", "policies", "environment"])
        if not self.policies:
            raise InputError('policies must have at least one policy, such as ["random"], not []')

    def changed(self, **values: Any) -> "Specification":
        """The specification with some values replaced; a value of None replaces nothing."""
        given = {key: value for key, value in values.items() if value is not None}
        return msgspec.structs.replace(self, **given)

    def quickly(self, replicas: int | None = None) -> "Specification":
        """The small version for a quick look; its title gives the number of replicas."""
        fewer = {"replicas": min(self.replicas, QUICK_REPLICAS), **self.quick}
        small = self.changed(**fewer).changed(replicas=replicas)
        return small.changed(title=f"{self.title} (quick look: {small.replicas} replicas)")


def policy_name(policy: PolicyData) -> str:
    """The name of a policy in results: its ``name``, else that of the preset, else its kind."""
    return PolicySpecification.of(policy).label


def experiment_groups() -> dict[str, list[str]]:
    """The names of the experiments that come with submax, by group: ``all`` are the paper's."""
    groups = {
        group: sorted(path.name.removesuffix(".toml") for path in (EXPERIMENTS / folder).iterdir())
        for group, folder in GROUPS.items()
    }
    later = [name for name in groups["all"] if name not in PAPER_ORDER]
    return {**groups, "all": [*PAPER_ORDER, *later]}


def load_named(name: str) -> Specification:
    """Load one of the experiments that come with submax."""
    return parse(_named_text(name), name)


def load_file(path: Path) -> Specification:
    """Load an experiment from the user's TOML file; its name is that of the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read the experiment file {str(path)!r}: {getattr(error, 'strerror', error)}; "
            "give the path of a TOML file in UTF-8"
        ) from error
    specification = parse(text, path.stem)
    keys = ("environment", "delay", "policies", "more_policies", "quick")
    values = {key: _with_paths(getattr(specification, key), path.parent) for key in keys}
    return specification.changed(**values)


def parse(text: str, name: str) -> Specification:
    """Parse the text of a TOML file into a specification."""
    table = _table(text, name)
    hints = get_type_hints(Specification)
    for key in table:
        one_of(f"key in {name}.toml:", key, [field for field in hints if field != "name"])
    for key, example in EXAMPLES.items():
        if key not in table:
            raise InputError(f"{name}.toml: the key {key!r} is missing: add it, {example}")
    values = {
        key: converted(f"{key} of {name}.toml", one, hints[key]) for key, one in table.items()
    }
    for key, one in values.get("quick", {}).items():
        values["quick"][key] = converted(f"{key} of quick of {name}.toml", one, hints.get(key, Any))
    for key in values.keys() & {"policies", "more_policies", "quick"}:
        values[key] = _defined(values[key], values.get("define", {}))
    return Specification(name=name, **values)


def _named_text(name: str) -> str:
    folders = {one: GROUPS[group] for group, names in experiment_groups().items() for one in names}
    one_of("experiment", name, folders)
    return (EXPERIMENTS / folders[name] / f"{name}.toml").read_text(encoding="utf-8")


def _table(text: str, name: str) -> dict[str, Any]:
    """The table of a TOML file, with what it takes over from the experiment that it extends."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name}.toml is not valid TOML: {error}") from error
    extended = table.pop("extends", None)
    if extended is None:
        return table
    base = _table(_named_text(extended), extended)
    merged = {
        key: base[key] | table[key]
        for key in MERGED
        if isinstance(base.get(key), dict) and isinstance(table.get(key), dict)
    }
    return base | table | merged


def own_file(kind: object) -> Path | None:
    """The existing file of ``my_policy.py:MyPolicy`` or ``data.csv``; None for other values."""
    if not isinstance(kind, str):
        return None
    # Texts such as sklearn:digits, a data set of a package, have none of the endings of a file.
    place = Path(kind if kind.endswith(ENDINGS) else kind.rpartition(":")[0])
    return place if place.suffix in (".py", *ENDINGS) and place.is_file() else None


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """Plain data with every number and text within tables and lists changed."""
    if isinstance(value, Mapping):
        return {key: _changed(one, change) for key, one in value.items()}
    if isinstance(value, list):
        return [_changed(one, change) for one in value]
    return change(value)


def _defined(value: Any, names: dict[str, Any]) -> Any:
    """The value with every ``"$name"`` replaced by the definition of this name."""

    def definition(text: Any) -> Any:
        if not isinstance(text, str) or not text.startswith("$"):
            return text
        one_of("name after $:", text[1:], names)
        # The definition of a name cannot contain the name itself.
        return _defined(names[text[1:]], {k: v for k, v in names.items() if k != text[1:]})

    return _changed(value, definition)


def _with_paths(value: Any, folder: Path) -> Any:
    """The value with paths of the user's own files resolved relative to ``folder``."""

    def resolved(text: Any) -> Any:
        is_path = isinstance(text, str) and (".py:" in text or text.endswith(ENDINGS))
        return str((folder / text).resolve()) if is_path else text

    return _changed(value, resolved)


def portable(value: Any) -> Any:
    """The value with paths of the user's own files replaced by their names and digests."""

    def digest(text: Any) -> Any:
        path = own_file(text)
        if path is None:
            return text
        name = text[len(str(path.parent)) + 1 :]
        return [name, hashlib.sha256(path.read_bytes()).hexdigest()]

    return _changed(value, digest)


class Configuration(NamedTuple):
    """The tables of an environment and a delay, each with a single value for each key."""

    environment: dict[str, Any]
    delay: dict[str, Any]

    def text(self, key: str) -> str | None:
        """The value of a key as a text; None if the configuration does not have the key."""
        if key == "delay":
            return str(DELAYS.build(self.delay, {}).length)
        table = self.environment if key in self.environment else self.delay
        return _normal(str(_plain(table[key]))) if key in table else None


def configurations(specification: Specification) -> list[Configuration]:
    """Every combination of the values that are listed for the environment and the delay."""
    tables = specification.environment
    delays = list(_combinations(specification.delay, DELAYS))
    return [
        Configuration(environment, delay)
        for table in (tables if isinstance(tables, list) else [tables])
        for environment in _combinations(table, ENVIRONMENTS)
        for delay in delays
    ]


def _combinations(table: Mapping[str, Any], registry: Registry[Any]) -> Iterator[dict[str, Any]]:
    for key, value in table.items():
        if value == []:
            raise InputError(
                f"{key} = [] has no value: give at least one, or [[]] for an empty list as "
                "the value"
            )
    kinds = table.get("kind")
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        one_kind = {**table, "kind": kind} if "kind" in table else table
        found = registry.find(kind) if isinstance(kind, str) else None
        hints = get_type_hints(found) if dataclasses.is_dataclass(found) else {}
        # A field that is itself a list, such as means, has several values if lists are nested more.
        choices = [
            value if _list_depth(value) > _tuple_depth(hints.get(key)) else [value]
            for key, value in one_kind.items()
        ]
        for values in itertools.product(*choices):
            yield dict(zip(table, values, strict=True))


def _tuple_depth(hint: Any) -> int:
    inner = [_tuple_depth(one) for one in get_args(hint)]
    return max(inner, default=0) + (get_origin(hint) is tuple)


def _list_depth(value: Any) -> int:
    return 1 + max(map(_list_depth, value), default=0) if isinstance(value, list) else 0


class Cell(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One configuration with one policy, as plain data that can be sent to any process."""

    labels: Labels
    policy_name: str
    environment: dict[str, Any]
    delay: dict[str, Any]
    policy: PolicyData
    observations: int
    replicas: int
    seed: int
    points: int
    version: str = __version__

    @cached_property
    def key(self) -> str:
        """A digest of the cell: equal on every machine for the same work by the same code."""
        return digest_of(portable(msgspec.to_builtins(self)))[:24]

    @property
    def decisions(self) -> int:
        return self.observations * self.replicas


def cells(
    specification: Specification, only: Iterable[str] = (), *, more: bool = True
) -> list[Cell]:
    """The cells of an experiment that ``only`` selects; a value that is not allowed is refused.

    ``only`` has texts such as ``arms=100``, with a key of the environment or the delay as it is in
    the file, ``delay`` (its length, as in the results) or ``policy``; if a key is given several
    times, any of its values. Nothing else is built. Without ``more``, ``more_policies`` are left
    out, unless ``only`` names policies. A cell takes no more decisions than its environment allows.
    """
    every = configurations(specification)
    chosen, policies = _selected(specification, every, only, more)
    labels_of, found = _labelling(every), list[Cell]()
    for environment, delay in chosen:
        made = ENVIRONMENTS.build(environment, {})
        labels = labels_of(made, environment, delay)
        found += [
            Cell(
                labels=labels,
                policy_name=name,
                environment=environment,
                delay=delay,
                policy=policy,
                observations=at_most(specification.observations, made),
                replicas=specification.replicas,
                seed=specification.seed,
                points=specification.points,
            )
            for name, policy in policies.items()
        ]
    known = dict.fromkeys(key for cell in found for key in cell.labels)
    for key in specification.reference:
        one_of("key of reference:", key, known)
    if len({str(cell.labels) for cell in found}) < len(chosen):
        raise InputError("a list in [environment] or [delay] has a repeated value: remove it")
    return found


def _selected(
    specification: Specification, every: Sequence[Configuration], only: Iterable[str], more: bool
) -> tuple[Sequence[Configuration], dict[str, PolicyData]]:
    wanted: dict[str, list[str]] = {}
    for text in only:
        key, sign, value = text.partition("=")
        if not sign or not value:
            raise InputError(f"--only must be KEY=VALUE, such as arms=100, not {text!r}")
        wanted.setdefault(key, []).append(value)
    policies = named_policies(specification)
    if not more and "policy" not in wanted:
        left_out = set(map(policy_name, specification.more_policies))
        policies = {name: one for name, one in policies.items() if name not in left_out}
    keys = dict.fromkeys(key for one in every for key in (*one.environment, *one.delay))
    chosen = every
    for key, values in wanted.items():
        one_of("key of --only", key, [*keys, "delay", "policy"])
        texts = list(policies) if key == "policy" else [one.text(key) for one in every]
        known = dict.fromkeys(filter(None, texts))
        for value in values:
            if _normal(value) not in known:
                raise InputError(
                    f"no configuration has {key}={value}: allowed values of {key} are "
                    f"{', '.join(known)}"
                )
        allowed = set(map(_normal, values))
        if key == "policy":
            policies = {name: one for name, one in policies.items() if name in allowed}
        else:
            chosen = [one for one in chosen if one.text(key) in allowed]
    for policy in policies.values():
        make_policy(policy)
    return chosen, policies


def _normal(text: str) -> str:
    """The text with one spelling for equal numbers: 9 for 9.0, 0.1 for 1e-1."""
    with suppress(ValueError):
        return str(_plain(float(text)))
    return text


def named_policies(specification: Specification) -> dict[str, PolicyData]:
    """The policies by the names they have in results; none of them is built."""
    found: dict[str, PolicyData] = {}
    for policy in [*specification.policies, *specification.more_policies]:
        name = policy_name(policy)
        if not name.strip() or len(name) > 100:
            raise InputError(
                f"the name of a policy must be a string of 1 to 100 characters, not {name!r}"
            )
        if name in found:
            raise InputError(
                f"two policies are called {name!r}: give one of them another name, such as "
                '{ name = "mine", kind = ... }'
            )
        found[name] = policy
    return found


def at_most(observations: int, environment: Environment[Any]) -> int:
    """The number of decisions, reduced to what the environment allows."""
    most = environment.most_decisions
    return observations if most is None else min(observations, most)


OTHER_COLUMNS = ("environment", "delay", "policy")
"""Columns of the results that no field of an environment may be called."""


def _labelling(every: Sequence[Configuration]) -> Callable[..., Labels]:
    """A function of an environment and its two tables that returns the columns of its results.

    These are the environment's fields and the length of the delay, with the kind of the environment
    if there are several, and what varies between delays if they have the same length.
    """
    delays = {digest_of(one.delay): one.delay for one in every}.values()
    delay_keys: list[str] = []
    if len({DELAYS.build(one, {}).length for one in delays}) < len(delays):
        keys = dict.fromkeys(key for one in delays for key in one)
        delay_keys = [key for key in keys if len({str(one.get(key)) for one in delays}) > 1]
    kinds = {one.environment.get("kind") for one in every}

    def labels(
        made: Environment[Any], table: Mapping[str, Any], delay: Mapping[str, Any]
    ) -> Labels:
        if not dataclasses.is_dataclass(made):
            raise InputError(
                f"the environment {made} must be a dataclass: write @dataclass(frozen=True) above "
                "its class"
            )
        fields = dataclasses.asdict(made)
        for name in OTHER_COLUMNS:
            if name in fields:
                raise InputError(
                    f"the environment {made} has a field {name!r}, which is the name of a column "
                    "of the results: rename the field"
                )
        kind = {"environment": _plain(table["kind"])} if len(kinds) > 1 else {}
        # A field that is None, such as given means, is not used, and needs no column.
        used = {key: _plain(value) for key, value in fields.items() if value is not None}
        more = {f"delay_{key}": _plain(delay.get(key)) for key in delay_keys}
        return {**kind, **used, "delay": DELAYS.build(delay, {}).length, **more}

    return labels


def _plain(value: Any) -> Any:
    """The value as a number or text for a table."""
    if isinstance(value, tuple | list):
        return "x".join(str(_plain(one)) for one in value) or "none"
    if own_file(value) is not None:
        return Path(value).name
    return int(value) if isinstance(value, float) and value.is_integer() else value


def digest_of(value: Any) -> str:
    """A digest of plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
