"""Fills the parts of the reference that are read from the code: ``make docs``.

Pages are written by hand, except what stands between ``<!-- made: NAME -->`` and ``<!-- end -->``;
`MADE` has the function of each name. What people must say beside the code is in meanings.toml,
whose keys are compared with the code.
"""

import dataclasses
import json
import re
import tomllib
import typing
from collections.abc import Callable, Iterable
from inspect import cleandoc
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import click
import msgspec
import pyarrow as pa
from docs.generators.markdown_tables import table
from prometheus_client.parser import text_string_to_metric_families

import submax
from submax.bandit.active_version import LATE, SIMPLER, UNIFORM, UNKNOWN_CATEGORIES
from submax.bandit.assignment import Group
from submax.bandit.conditions import Condition
from submax.bandit.declaring import read_bandit
from submax.bandit.durable import DAMAGED, STEPS
from submax.bandit.export import DecisionTables
from submax.bandit.guard_rails import GuardRails
from submax.bandit.settings import (
    DECLARED_TYPES,
    FIXED,
    STORE_ONLY,
    ContextField,
    Settings,
)
from submax.bandit.training_rows import STATUSES
from submax.cli import main as commands
from submax.cli.main import STORE_VARIABLE
from submax.cli.serving import serve
from submax.client.client import REFUSALS as CLIENT_ERRORS
from submax.core import errors
from submax.core.registry import Registry
from submax.environments import ENVIRONMENTS
from submax.estimators import ESTIMATORS
from submax.evaluation.columns import ROLES, USUAL
from submax.policies import POLICIES
from submax.server.api import OPERATIONS
from submax.server.app import STATUS
from submax.server.limits import CODES
from submax.server.observing import ALWAYS_COUNTED, Metrics
from submax.server.openapi import REFUSALS, TAGS, description
from submax.simulation import DELAYS
from submax.simulation.experiment import MERGED, QUICK_REPLICAS, Specification
from submax.strategies import STRATEGIES

DOCS = Path(__file__).parents[1]
PAGES = sorted((DOCS / "reference").glob("*.md"))
MEANINGS = tomllib.loads(Path(__file__).with_name("meanings.toml").read_text(encoding="utf-8"))
BLOCK = re.compile(r"<!-- made: ([a-z -]+) -->\n.*?<!-- end -->", flags=re.DOTALL)
Schema = dict[str, Any]


def filled(text: str) -> str:
    """Return a page with its made parts as the code is now."""
    made = "<!-- made: {} -->\n\n{}\n\n<!-- end -->"
    return BLOCK.sub(lambda block: made.format(block[1], MADE[block[1]]()), text)


def meanings(name: str, names: Iterable[str]) -> dict[str, Any]:
    """Return a table of meanings.toml, which must have exactly the names that the code has."""
    if different := sorted({*names} ^ {*MEANINGS[name]}):
        raise SystemExit(f"meanings.toml [{name}] lacks, or has in vain: {', '.join(different)}")
    found: dict[str, Any] = MEANINGS[name]
    return found


def cell(text: str) -> str:
    """Return a text in one line that can stand in a table."""
    return " ".join(text.replace("``", "`").replace("|", "\\|").split())


def listed(words: Iterable[str]) -> str:
    """Return words as code, separated by commas."""
    return ", ".join(f"`{word}`" for word in words)


# Commands


def command_help(
    command: click.Command = commands, parent: click.Context | None = None, name: str = "submax"
) -> str:
    """The help of a command and of the commands inside it."""
    options = commands.context_settings["help_option_names"]
    context = click.Context(
        command, parent, name, terminal_width=90, max_content_width=90, help_option_names=options
    )
    parts = [f"## {context.command_path}"] if parent else []
    parts.append(f"```text\n{command.get_help(context)}\n```")
    if isinstance(command, click.Group):
        inside = sorted(command.commands.items())
        parts += [command_help(one, context, name) for name, one in inside]
    return "\n\n".join(parts)


def server_options() -> str:
    """The options of ``submax serve``, with their variables."""
    rows = [("`STORE`", f"`{STORE_VARIABLE}`", "", "File of the store, or address of a database.")]
    for one in serve.params:
        if isinstance(one, click.Option):
            default = one.default if isinstance(one.default, tuple) else (one.default,)
            shown = ", ".join(map(str, default)) if one.show_default else ""
            rows.append((f"`{one.opts[0]}`", f"`{one.envvar}`", shown, cell(one.help or "")))
    return table(("option", "variable", "default", "meaning"), rows)


# HTTP

PLAIN = {
    **{"integer": "whole number", "number": "number", "string": "text"},
    **{"null": "null", "boolean": "true or false"},
}
BOUNDS = {
    **{"minimum": "at least", "exclusiveMinimum": "above"},
    **{"maximum": "at most", "exclusiveMaximum": "below"},
}
LARGEST = 1e9
"""Larger bounds only refuse absurd numbers, so they are not mentioned."""


def http_operations() -> str:
    """The operations in a table for each group, and the types of their messages."""
    shown = [one for one in OPERATIONS if not one.hidden]
    described = description(shown)
    parts = []
    for tag in TAGS:
        rows = []
        for one in shown:
            if one.tag == tag:
                found = described["paths"][one.path][one.method.lower()]
                body = content_words(found["requestBody"]) if one.body else ""
                answer = content_words(found["responses"][str(one.status)])
                scope = f"`{one.scope}`" if one.scope else "none"
                operation = f"`{one.method} {one.path}`"
                rows.append((operation, scope, body, answer, cell(one.summary)))
        parts += [f"## {tag}", table(("operation", "scope", "body", "answer", "effect"), rows)]
    parts.append("## Types of messages")
    for name, schema in sorted(described["components"]["schemas"].items()):
        text, words = cleandoc(schema.get("description", "")).replace("``", "`"), type_words(schema)
        fields = [text, fields_table(schema)] if schema.get("properties") else []
        parts += [f"### Type {name}", *(fields or [f"{words[0].upper()}{words[1:]}."])]
    return "\n\n".join(filter(None, parts))


def content_words(message: Schema) -> str:
    """Return the type of a body or an answer, with a link to its section."""
    ((media, content),) = message["content"].items()
    return type_words(content["schema"]) if media == "application/json" else f"`{media}`"


def fields_table(schema: Schema) -> str:
    """Return a table of the fields of an object: name, type, default and meaning."""
    required = schema.get("required", [])
    rows = []
    for name, field in schema["properties"].items():
        default = f"`{json.dumps(field['default'])}`" if "default" in field else ""
        default = default or ("required" if name in required else "")
        rows.append((f"`{name}`", type_words(field), default, cell(_described(field))))
    head = ("field", "value", "default", "meaning")
    # The description of the object says what its fields mean if they do not say it themselves.
    columns = len(head) if any(row[-1] for row in rows) else len(head) - 1
    return table(head[:columns], [row[:columns] for row in rows])


def type_words(schema: Schema) -> str:
    """Return the type of a value in words; the type of an object links to its section."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#type-{name.lower()})"
    if "anyOf" in schema:
        each = [part for one in schema["anyOf"] for part in type_words(one).split(" or ")]
        return " or ".join(dict.fromkeys(each))
    if "enum" in schema:
        return " or ".join(f"`{json.dumps(one)}`" for one in schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(type_words({**schema, "type": one}) for one in kind)
    if kind in ("array", "object"):
        inside = schema.get("items" if kind == "array" else "additionalProperties")
        words = type_words(inside) if isinstance(inside, dict) else "any value"
        words = f"({words.replace(' or ', ' / ')})" if " or " in words else words
        return f"{'list' if kind == 'array' else 'table'} of {words}"
    limits = {words: schema[key] for key, words in BOUNDS.items() if key in schema}
    bounds = [f" {words} {one:g}" for words, one in limits.items() if abs(one) < LARGEST]
    return PLAIN.get(str(kind), "any value") + ("," + " and".join(bounds) if bounds else "")


def _described(schema: Schema) -> str:
    """Return the description of a value, or of one of its alternatives."""
    inside = (_described(one) for one in schema.get("anyOf", ()))
    return str(schema.get("description") or next(filter(None, inside), ""))


# Settings


def default_of(field: msgspec.structs.FieldInfo) -> Any:
    """Return the default of a field, which may be made by a function."""
    made = field.default_factory
    return field.default if made is msgspec.NODEFAULT else made()


def bandit_settings() -> str:
    """The words of a declaration, and the types inside of them."""
    names = ["actions", *(name for name in DECLARED_TYPES if name != "actions")]
    words = msgspec.defstruct("Declaration", [(name, DECLARED_TYPES[name]) for name in names])
    types = [words, GuardRails, ContextField]
    template = "#/components/schemas/{name}"
    schemas, components = msgspec.json.schema_components(types, ref_template=template)
    declared, *inside = (components[one["$ref"].rpartition("/")[2]] for one in schemas)
    for field in msgspec.structs.fields(Settings):
        if field.name != "menu":
            declared["properties"][field.name]["default"] = msgspec.to_builtins(default_of(field))
    for name in ("action_features", "context", "guard_rails"):
        declared["properties"][name]["default"] = {}
    always_fixed = [word for word in FIXED if word != "reward_wait"]
    parts = [
        fields_table(declared),
        f"These cannot be changed: {listed(always_fixed)}. After the first decision, "
        "`reward_wait` can still change if the bandit has a store, but not between 0 and more "
        "than 0.",
        f"Only a bandit with a store (`submax.open`, or a server) has {listed(STORE_ONLY)}.",
    ]
    for one in inside:
        parts += [f"### Type {one['title']}", cell(one["description"]), fields_table(one)]
    return "\n\n".join(parts)


# Metrics

CONDITIONS = ("reward-rate", "missing-rewards", "refits", "silent-arm", "late-arm")


def metrics() -> str:
    """The metrics of a server that has had one of everything, and the values of `kind`."""
    bandit = SimpleNamespace(
        name="homepage",
        version=1,
        failures={UNIFORM: 1},
        conditions=lambda: [Condition("refits", "", {})],
        smallest_propensity=lambda: 0.1,
        counts=lambda: {"decisions": 1},
    )
    bandit.read = bandit
    made = Metrics(lambda: [bandit])
    made.count("decide", 200, 0.001)
    events = (*ALWAYS_COUNTED, *STATUSES[1:], "by default")
    failures = (SIMPLER, UNIFORM, LATE, DAMAGED, STEPS, f"{UNKNOWN_CATEGORIES} of 'FIELD'")
    kinds_of = {"events": events, "failures": failures, "conditions": CONDITIONS}
    rows = []
    for one in text_string_to_metric_families(made.text().decode()):
        # Prometheus adds to each counter the time at which it began.
        if one.name.startswith("submax") and not one.name.endswith("_created"):
            ending = "_total" if one.type == "counter" else ""
            labels = {label for sample in one.samples for label in sample.labels} - {"le"}
            text = cell(one.documentation)
            if values := kinds_of.get(one.name.removeprefix("submax_")):
                text += f" `kind` is {listed(value.replace(' ', '_') for value in values)}."
            rows.append((f"`{one.name}{ending}`", one.type, listed(sorted(labels)), text))
    return table(("metric", "type", "labels", "meaning"), rows)


# Errors

SOURCE = DOCS.parent / "src" / "submax"
WRITTEN = re.compile(r'code(?:: ClassVar\[str\])? ?= ?"([a-z-]+)"|"(invalid-option)"')
"""A code that is written where an error is raised, or where an exception class is defined."""
CONSTANT = re.compile(r"\bcode=([A-Z_]{3,})")
"""The name of a constant with a code, where an error is raised."""


def error_codes() -> str:
    """Every code that an error can have, with its meaning."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    defined = rf'^(?:{"|".join({*CONSTANT.findall(text)})}) = "([a-z-]+)"$'
    written = {code for found in WRITTEN.findall(text) for code in found if code}
    written |= {*re.findall(defined, text, flags=re.MULTILINE), *CODES.values()}
    found = meanings("errors", written)
    return table(
        ("code", "meaning", "what to do"), [(f"`{code}`", *found[code]) for code in sorted(found)]
    )


def error_classes() -> str:
    """The exceptions, with the status of an answer by a server."""
    rows = []
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.Error):
            # Clients turn these statuses into the error again.
            known = [status for status, one in CLIENT_ERRORS.items() if one is kind]
            known = known or [status for base, status in STATUS if issubclass(kind, base)][:1]
            names = (kind.__name__, kind.default_code, kind.__bases__[0].__name__)
            words = cell((kind.__doc__ or "").split("\n\n")[0])
            rows.append((*(f"`{name}`" for name in names), ", ".join(map(str, known)), words))
    return table(("exception", "code", "is a kind of", "HTTP status", "meaning"), rows)


# Columns of logs


def export_columns() -> str:
    """The columns of an export, of a bandit with two fields of context and rewards by name."""
    context = {"country": ["fr", "de"], "age": "number"}
    declared = {"actions": ["A", "B"], "context": context, "rewards": {"click": 1}}
    with submax.open(":memory:", background=False, **declared) as bandit:
        declared = read_bandit(bandit.store, bandit.name)
        schema: pa.Schema = DecisionTables(bandit.store, declared).schema
    words = {"statuses": listed(STATUSES), "groups": listed(get_args(Group))}
    found = meanings("decision_columns", schema.names)
    rows = [
        (f"`{field.name}`", f"`{field.type}`", found[field.name].format(**words))
        for field in schema
    ]
    return table(("column", "type", "meaning"), rows)


def log_columns() -> str:
    """The roles of columns in any log, and the names by which they are found."""
    usual = {role: USUAL.get(role, ()) for role in ROLES}
    usual |= {"action": ("action", "action_SLOT"), "context": ("context_FIELD",)}
    usual["propensity"] = (*USUAL["propensity"], "propensity_SLOT")
    found = meanings("roles", ROLES)
    rows = [(f"`{role}`", listed(usual[role]), found[role]) for role in ROLES]
    return table(("role", "usual names", "meaning"), rows)


# TOML files


def experiment_keys() -> str:
    """The keys of an experiment."""
    fields = {one.name: one for one in msgspec.structs.fields(Specification)}
    del fields["name"]
    hints = typing.get_type_hints(Specification)
    words = {"merged": listed(MERGED), "replicas": str(QUICK_REPLICAS)}
    rows = []
    for name, text in meanings("experiment", ["extends", *fields]).items():
        default, allowed = "", ""
        if field := fields.get(name):
            default = "required" if field.required else f"`{json.dumps(default_of(field))}`"
        if typing.get_origin(hint := hints.get(name)) is typing.Literal:
            allowed = f" One of: {listed(json.dumps(one) for one in typing.get_args(hint))}."
        rows.append((f"`{name}`", default, cell(text.format(**words)) + allowed))
    return table(("key", "default", "meaning"), rows)


def kinds(registry: Registry[Any]) -> str:
    """The kinds of a registry, and their keys with defaults."""
    rows = []
    for name in sorted(registry.names()):
        found = registry.find(name)
        first = (found.__doc__ or "").strip().split("\n\n")[0]
        fields = dataclasses.fields(found) if dataclasses.is_dataclass(found) else ()
        rows.append((f"`{name}`", cell(first), listed(_key(one) for one in fields if one.init)))
    return table(("kind", "what it is", "keys"), rows)


def _key(field: "dataclasses.Field[Any]") -> str:
    if field.default is None:
        return f"{field.name}?"
    missing = dataclasses.MISSING
    value = field.default if field.default_factory is missing else field.default_factory()
    if value is missing:
        return field.name
    simple = isinstance(value, bool | int | float | str | list | tuple)
    return f"{field.name} = {json.dumps(value) if simple else type(value).__name__}"


MADE: dict[str, Callable[[], str]] = {
    "commands": command_help,
    "server options": server_options,
    "http statuses": lambda: table(("status", "meaning"), sorted(REFUSALS.items())),
    "http operations": http_operations,
    "bandit settings": bandit_settings,
    "metrics": metrics,
    "error codes": error_codes,
    "error classes": error_classes,
    "decision columns": export_columns,
    "log columns": log_columns,
    "experiment keys": experiment_keys,
    "environments": lambda: kinds(ENVIRONMENTS),
    "delays": lambda: kinds(DELAYS),
    "policies": lambda: kinds(POLICIES),
    "strategies": lambda: kinds(STRATEGIES),
    "estimators": lambda: kinds(ESTIMATORS),
}

if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
