"""The reference of TOML files: the keys of an experiment, and the kinds that it can name."""

import dataclasses
import json
import typing
from pathlib import Path
from typing import Any

import msgspec
from docs.generators.markdown_tables import table
from docs.generators.reference.meanings import meanings
from docs.generators.reference.schema_words import cell

from submax.core.registry import Registry
from submax.environments import ENVIRONMENTS
from submax.estimators import ESTIMATORS
from submax.policies import POLICIES
from submax.simulation import DELAYS
from submax.simulation.experiment import MERGED, QUICK_REPLICAS, Specification
from submax.strategies import STRATEGIES

PAGE = Path(__file__).parents[2] / "reference" / "toml.md"
INTRO = """# TOML files

This page is generated from the code by `make docs`.

## An experiment

`submax simulate mine.toml` runs a file with these keys. [Experiments](../how-to/experiments.md)
and [from a question to a figure](../how-to/question-to-figure.md) show whole files. `"$name"`
in a list of policies stands for the table `name` of `define`."""
SCHEMA = """## A schema of a log

`submax evaluate visits.csv --declare schema.toml`, and likewise `learn` and `tune`, take what
is allowed in a log from a file with the keys `actions`, `action_features`, `context` and
`rewards`, as they are [declared for a bandit](settings.md#of-a-bandit). What is not declared is
taken from the values that occur in the log."""
KINDS = """The keys of each `kind`, with their defaults. A key alone is required. A key with `?` has
no default value and can be left out: `moss` without a `horizon`, for example, takes the number of
pulls so far. The Python reference says what each key means."""
REGISTRIES: dict[str, Registry[Any]] = {
    "Environments": ENVIRONMENTS,
    "Delays": DELAYS,
    "Policies": POLICIES,
    "Strategies": STRATEGIES,
    "Estimators": ESTIMATORS,
}


def page() -> str:
    """Return the text of the page."""
    parts = [INTRO, _keys(), SCHEMA, "## Kinds", KINDS]
    for title, folder in REGISTRIES.items():
        parts += [f"### {title}", _kinds(folder)]
    return "\n\n".join(parts) + "\n"


def _keys() -> str:
    fields = {one.name: one for one in msgspec.structs.fields(Specification)}
    del fields["name"]
    merged = ", ".join(f"`{one}`" for one in MERGED)
    rows = [
        (
            f"`{name}`",
            _default(fields[name]) if name in fields else "",
            cell(text.format(merged=merged, replicas=QUICK_REPLICAS)) + _allowed(name),
        )
        for name, text in meanings("experiment", ["extends", *fields]).items()
    ]
    return table(("key", "default", "meaning"), rows)


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    made = field.default_factory
    value = field.default if made is msgspec.NODEFAULT else made()
    return f"`{json.dumps(value)}`"


def _allowed(key: str) -> str:
    """Return the words that a key allows, if they are few."""
    hint = typing.get_type_hints(Specification).get(key)
    if typing.get_origin(hint) is not typing.Literal:
        return ""
    return f" One of: {', '.join(f'`{json.dumps(one)}`' for one in typing.get_args(hint))}."


def _kinds(folder: Registry[Any]) -> str:
    rows = [
        (f"`{name}`", cell(_first_line(found)), _parameters(found))
        for name in sorted(folder.names())
        for found in [folder.find(name)]
    ]
    return table(("kind", "what it is", "keys"), rows)


def _first_line(found: type) -> str:
    return (found.__doc__ or "").strip().split("\n\n")[0]


def _parameters(found: type) -> str:
    if not dataclasses.is_dataclass(found):
        return ""
    return ", ".join(f"`{_parameter(field)}`" for field in dataclasses.fields(found) if field.init)


def _parameter(field: "dataclasses.Field[Any]") -> str:
    if field.default is None:
        return f"{field.name}?"
    if field.default is not dataclasses.MISSING:
        return f"{field.name} = {_plain(field.default)}"
    if field.default_factory is not dataclasses.MISSING:
        return f"{field.name} = {_plain(field.default_factory())}"
    return field.name


def _plain(value: Any) -> str:
    """Return a value as TOML or, if it is an object, by the name of its class."""
    if isinstance(value, tuple):
        value = list(value)
    if value is None or isinstance(value, bool | int | float | str | list):
        return json.dumps(value)
    return type(value).__name__
