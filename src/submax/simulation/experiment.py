"""An experiment in a TOML file: environments, policies, and the values that are combined."""

import dataclasses
import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from submax.core.checks import one_of, whole_number
from submax.core.errors import InputError
from submax.core.registry import Registry
from submax.environments import ENVIRONMENTS
from submax.policies.specification import PolicySpecification
from submax.schema.names import known_type
from submax.simulation import DELAYS

PAPER = resources.files("submax.experiments") / "paper"
BEYOND = resources.files("submax.experiments") / "beyond"
BAKEOFF = resources.files("submax.experiments") / "bakeoff"
RIVALS = resources.files("submax.experiments") / "rivals"
QUICK_REPLICAS = 10
"""The most replicas of a quick look whose specification gives no other number."""
TYPE_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text in quotes",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
"""The types that msgspec names in its messages, in the words of TOML."""
MERGED = ("environment", "delay", "quick", "define")
"""The tables whose keys a file with ``extends`` replaces one by one."""
WHOLE_NUMBERS = ("observations", "replicas", "points", "seed")
"""The keys whose values are whole numbers, which may be written as 1e6."""
EXAMPLES = {
    "observations": "such as observations = 5000",
    "environment": 'such as [environment] with kind = "bernoulli" and arms = 10',
    "policies": 'such as policies = ["random", "rcp-submax"]',
}
"""How the required keys are written."""
DATA_ENDINGS = (".csv", ".parquet")
"""The endings of data files that a specification can name."""


class Specification(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment: a sweep of configurations × policies, the paper's illustration, or logs.

    In ``environment`` and ``delay`` a list stands for several configurations. A policy is the name
    of a preset, or a table with its ``kind``, its parameters and, optionally, a ``name`` for the
    results. ``define`` has tables by name; ``"$name"`` in ``policies`` or ``quick`` is replaced by
    the table. ``more_policies`` are only run if they are asked for, by ``--all`` or ``--only
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
    environment: dict[str, Any]
    delay: dict[str, Any] = msgspec.field(
        default_factory=lambda: {"kind": "batched-rewards", "size": 1}
    )
    policies: list[str | dict[str, Any]]
    more_policies: list[str | dict[str, Any]] = []
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


def policy_name(policy: str | dict[str, Any]) -> Any:
    """The name of a policy in results: its ``name``, else that of the preset, else its kind."""
    return PolicySpecification.of(policy).label


def paper_experiments() -> list[str]:
    """The names of the paper's experiments."""
    order = ["illustration", "bernoulli", "contextual", "contextual-wide", "combinatorial"]
    names = {path.name.removesuffix(".toml") for path in PAPER.iterdir()}
    return [name for name in order if name in names] + sorted(names - set(order))


def beyond_experiments() -> list[str]:
    """The names of the experiments on questions beyond the paper."""
    return sorted(path.name.removesuffix(".toml") for path in BEYOND.iterdir())


def bakeoff_experiments() -> list[str]:
    """The names of the experiments that compare with other libraries on classification tables."""
    return sorted(path.name.removesuffix(".toml") for path in BAKEOFF.iterdir())


def rival_experiments() -> list[str]:
    """The names of the experiments with methods of the related work that are not in the paper."""
    return sorted(path.name.removesuffix(".toml") for path in RIVALS.iterdir())


def load_named(name: str) -> Specification:
    """Load one of the experiments that come with submax."""
    return parse(_named_text(name), name)


def load_file(path: Path) -> Specification:
    """Load an experiment from the user's TOML file; its name is that of the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (
            "it is not a UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
        )
        raise InputError(
            f"cannot read the experiment file {str(path)!r}: {reason}; give the path of a TOML file"
        ) from error
    specification = parse(text, path.stem)
    return specification.changed(
        environment=_own_classes(specification.environment, path.parent),
        delay=_own_classes(specification.delay, path.parent),
        policies=_own_classes(specification.policies, path.parent),
        more_policies=_own_classes(specification.more_policies, path.parent),
        quick=_own_classes(specification.quick, path.parent),
    )


def parse(text: str, name: str) -> Specification:
    """Parse the text of a TOML file into a specification."""
    table = _table(text, name)
    fields = [field for field in Specification.__struct_fields__ if field != "name"]
    for key in table:
        one_of(f"key in {name}.toml:", key, fields)
    table = _with_whole_numbers(table)
    try:
        given = msgspec.convert({"name": name, **table}, known_type(Specification))
    except msgspec.ValidationError as error:
        raise InputError(f"{name}.toml: {_explained(str(error), table)}") from error
    return given.changed(
        policies=_defined(given.policies, given.define),
        more_policies=_defined(given.more_policies, given.define),
        quick=_defined(given.quick, given.define),
    )


def _named_text(name: str) -> str:
    """The TOML file of an experiment that comes with submax."""
    found = dict.fromkeys(paper_experiments(), PAPER)
    found |= dict.fromkeys(beyond_experiments(), BEYOND)
    found |= dict.fromkeys(bakeoff_experiments(), BAKEOFF)
    found |= dict.fromkeys(rival_experiments(), RIVALS)
    one_of("experiment", name, found)
    return (found[name] / f"{name}.toml").read_text(encoding="utf-8")


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
    merged = {key: base[key] | table[key] for key in MERGED if key in base and key in table}
    return base | table | merged


def _with_whole_numbers(table: dict[str, Any]) -> dict[str, Any]:
    """The table with numbers of decisions such as 1e6, which TOML reads as floats, as ints."""
    numbers = {
        key: int(table[key])
        for key in WHOLE_NUMBERS
        if isinstance(table.get(key), float) and table[key].is_integer()
    }
    quick = table.get("quick")
    rest = {"quick": _with_whole_numbers(quick)} if isinstance(quick, dict) else {}
    return {**table, **numbers, **rest}


def _explained(message: str, table: dict[str, Any]) -> str:
    """A message of msgspec in the words of TOML, with the value that was given."""
    if missing := re.search(r"missing required field `(\w+)`", message):
        return f"the key {missing[1]!r} is missing: add it, {EXAMPLES[missing[1]]}"
    key = re.search(r"`\$\.(\w+)", message)
    if key is None or key[1] not in table:
        return message
    given = f"{key[1]} = {table[key[1]]!r}"
    if message.startswith("Invalid enum value"):
        allowed = get_args(get_type_hints(Specification)[key[1]])
        return f"{given} is not allowed, it must be one of: {', '.join(map(repr, allowed))}"
    types = re.search(r"Expected `([^`]+)`, got `(\w+)`", message)
    if types is None:
        return f"{given} is wrong: {message}"
    words = " or ".join(TYPE_WORDS.get(name.strip(), name) for name in types[1].split("|"))
    wrong = TYPE_WORDS.get(types[2], types[2])
    if message.endswith(f"`$.{key[1]}`"):
        return f"{given} must be {words}, not {wrong}"
    return f"{given} is wrong: it must have {words} where it has {wrong}"


def own_file(kind: object) -> Path | None:
    """The existing file of ``my_policy.py:MyPolicy`` or ``data.csv``; None for other values."""
    if not isinstance(kind, str):
        return None
    # Texts such as sklearn:digits, a data set of a package, have none of the endings of a file.
    place = kind if kind.endswith(DATA_ENDINGS) else kind.rpartition(":")[0]
    is_file = place.endswith((".py", *DATA_ENDINGS)) and Path(place).is_file()
    return Path(place) if is_file else None


def _defined(value: Any, names: dict[str, Any]) -> Any:
    """The value with every ``"$name"`` replaced by the definition of this name."""
    if isinstance(value, dict):
        return {key: _defined(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_defined(one, names) for one in value]
    if isinstance(value, str) and value.startswith("$"):
        one_of("name after $:", value[1:], names)
        # The definition of a name cannot contain the name itself.
        return _defined(names[value[1:]], {k: v for k, v in names.items() if k != value[1:]})
    return value


def _own_classes(value: Any, folder: Path) -> Any:
    """The value with paths of the user's own files resolved relative to ``folder``."""
    if isinstance(value, dict):
        return {key: _own_classes(one, folder) for key, one in value.items()}
    if isinstance(value, list):
        return [_own_classes(one, folder) for one in value]
    if isinstance(value, str) and (".py:" in value or value.endswith(DATA_ENDINGS)):
        return str((folder / value).resolve())
    return value


def configurations(
    specification: Specification,
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every combination of the values that are listed for the environment and the delay."""
    yield from itertools.product(
        _combinations(specification.environment, ENVIRONMENTS),
        _combinations(specification.delay, DELAYS),
    )


def _combinations(table: Mapping[str, Any], folder: Registry[Any]) -> Iterator[dict[str, Any]]:
    lists = _tuple_fields(table, folder)
    choices = [
        value if isinstance(value, list) and not _is_one_value(key, value, lists) else [value]
        for key, value in table.items()
    ]
    for key, value in table.items():
        if value == []:
            raise InputError(
                f"{key} = [] has no value, and a list must have at least one; an empty list as "
                "the value itself is written [[]]"
            )
    for values in itertools.product(*choices):
        yield dict(zip(table, values, strict=True))


def _tuple_fields(table: Mapping[str, Any], folder: Registry[Any]) -> dict[str, int]:
    """The fields whose value is itself a list, with the depth of the list, such as 1 for means."""
    kind = table.get("kind")
    found = folder.find(kind) if isinstance(kind, str) else None
    if not dataclasses.is_dataclass(found):
        return {}
    return {name: depth for name, hint in get_type_hints(found).items() if (depth := _depth(hint))}


def _depth(hint: Any) -> int:
    """How many tuples are within each other in a type."""
    inner = [_depth(one) for one in get_args(hint)]
    return max(inner, default=0) + (get_origin(hint) is tuple)


def _is_one_value(key: str, value: Any, lists: Mapping[str, int]) -> bool:
    """Whether a list is the value of a field and does not stand for several configurations."""
    return value != [] and _list_depth(value) <= lists.get(key, 0)


def _list_depth(value: Any) -> int:
    """How many lists are within each other in a value."""
    if not isinstance(value, list):
        return 0
    return 1 + max(map(_list_depth, value), default=0)
