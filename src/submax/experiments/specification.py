"""What a TOML file says about an experiment."""

import re
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import msgspec

from submax.core.checks import one_of, whole_number
from submax.core.errors import InputError
from submax.policies.specification import PolicySpecification

PAPER = resources.files("submax.experiments") / "paper"
BEYOND = resources.files("submax.experiments") / "beyond"
BAKEOFF = resources.files("submax.experiments") / "bakeoff"
QUICK_REPLICAS = 10
DATA = (".csv", ".parquet")


class Specification(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment: a sweep of configurations × policies, the paper's illustration, or logs.

    In ``environment`` and ``delay`` a list stands for several configurations. A policy is the name
    of a preset, or a table with ``kind``, its parameters and, if wanted, a ``name`` of its own.
    ``reference`` is the configuration around which the figures vary one value at a time;
    ``statements`` names the part of the paper whose sentences the results are put to. ``quick``
    has the values that a first look changes. What ``define`` names can stand in policies as
    ``"$name"``.
    """

    name: str
    experiment: Literal["sweep", "illustration", "offline"] = "sweep"
    title: str = ""
    measure: Literal["regret", "reward"] = "regret"
    reference: dict[str, Any] = {}
    statements: Literal["", "section 4.1", "section 4.2", "section 4.3"] = ""
    observations: int
    replicas: int = 100
    seed: int = 0
    points: int = 500
    environment: dict[str, Any]
    delay: dict[str, Any] = msgspec.field(
        default_factory=lambda: {"kind": "batch-flush", "size": 1}
    )
    policies: list[str | dict[str, Any]]
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
            raise InputError("policies must name at least one policy, not []")

    def changed(self, **values: Any) -> "Specification":
        """The same with other values; None leaves one as it is."""
        given = {key: value for key, value in values.items() if value is not None}
        return msgspec.structs.replace(self, **given)

    def quickly(self, replicas: int | None = None) -> "Specification":
        """The small version for a first look, with so many replicas; its title says how many."""
        fewer = {"replicas": min(self.replicas, QUICK_REPLICAS), **self.quick}
        small = self.changed(**fewer).changed(replicas=replicas)
        return small.changed(title=f"{self.title} (quick look: {small.replicas} replicas)")


def policy_name(policy: str | dict[str, Any]) -> Any:
    """The name a policy has in results: its own, that of the preset, or its kind."""
    return PolicySpecification.of(policy).label


def paper_experiments() -> list[str]:
    """The names of the paper's experiments."""
    order = ["illustration", "bernoulli", "contextual", "combinatorial"]
    names = {path.name.removesuffix(".toml") for path in PAPER.iterdir()}
    return [name for name in order if name in names] + sorted(names - set(order))


def beyond_experiments() -> list[str]:
    """The names of the experiments on what the paper leaves open."""
    return sorted(path.name.removesuffix(".toml") for path in BEYOND.iterdir())


def bakeoff_experiments() -> list[str]:
    """The names of the experiments that compare with other libraries on classification tables."""
    return sorted(path.name.removesuffix(".toml") for path in BAKEOFF.iterdir())


def load_named(name: str) -> Specification:
    """One of the experiments that come with submax."""
    found = dict.fromkeys(paper_experiments(), PAPER)
    found |= dict.fromkeys(beyond_experiments(), BEYOND)
    found |= dict.fromkeys(bakeoff_experiments(), BAKEOFF)
    one_of("experiment", name, found)
    return parse((found[name] / f"{name}.toml").read_text(encoding="utf-8"), name)


def load_file(path: Path) -> Specification:
    """An experiment of the user's own; its name is that of the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the experiment file {str(path)!r}: {error}") from error
    specification = parse(text, path.stem)
    return specification.changed(
        environment=_own_classes(specification.environment, path.parent),
        delay=_own_classes(specification.delay, path.parent),
        policies=_own_classes(specification.policies, path.parent),
        quick=_own_classes(specification.quick, path.parent),
    )


def parse(text: str, name: str) -> Specification:
    """The experiment in a TOML text."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name}.toml is not valid TOML: {error}") from error
    fields = [field for field in Specification.__struct_fields__ if field != "name"]
    for key in table:
        one_of(f"key in {name}.toml:", key, fields)
    try:
        given = msgspec.convert({"name": name, **table}, Specification)
    except msgspec.ValidationError as error:
        raise InputError(f"{name}.toml: {_with_value(str(error), table)}") from error
    return given.changed(
        policies=_defined(given.policies, given.define), quick=_defined(given.quick, given.define)
    )


def _with_value(message: str, table: dict[str, Any]) -> str:
    """A message about ``$.key`` with the value that is there."""
    found = re.search(r"`\$\.(\w+)", message)
    if found is None or found[1] not in table:
        return message
    return f"{found[1]} = {table[found[1]]!r} is wrong: {message}"


def own_file(kind: object) -> Path | None:
    """The file behind ``my_policy.py:MyPolicy`` or ``data.csv``; None for other values."""
    if not isinstance(kind, str):
        return None
    # What has neither ending, such as the packaged set sklearn:digits, is no file of the user's.
    path = Path(kind if kind.endswith(DATA) else kind.rpartition(":")[0])
    return path if path.name.endswith((".py", *DATA)) and path.is_file() else None


def _defined(value: Any, names: dict[str, Any]) -> Any:
    """The same with ``"$name"`` replaced by what it stands for."""
    if isinstance(value, dict):
        return {key: _defined(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_defined(one, names) for one in value]
    if isinstance(value, str) and value.startswith("$"):
        one_of("name after $:", value[1:], names)
        # What a name stands for cannot hold the name itself.
        return _defined(names[value[1:]], {k: v for k, v in names.items() if k != value[1:]})
    return value


def _own_classes(value: Any, folder: Path) -> Any:
    """Files of the user's own lie beside the experiment's; their whole path is kept."""
    if isinstance(value, dict):
        return {key: _own_classes(one, folder) for key, one in value.items()}
    if isinstance(value, list):
        return [_own_classes(one, folder) for one in value]
    if isinstance(value, str) and (".py:" in value or value.endswith(DATA)):
        return str((folder / value).resolve())
    return value
