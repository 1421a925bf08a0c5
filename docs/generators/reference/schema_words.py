"""JSON schemas in words, for pages that people read."""

import json
from typing import Any

from docs.generators.markdown_tables import table

Schema = dict[str, Any]
PLAIN = {
    "integer": "whole number",
    "number": "number",
    "string": "text",
    "boolean": "true or false",
}
BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}
LARGEST = 1e9
"""Bounds from this on only refuse numbers that nobody can mean: they are not mentioned."""


def fields_table(schema: Schema, left_out: tuple[str, ...] = ()) -> str:
    """Return a table of the fields of an object: name, type, default and meaning."""
    required = schema.get("required", [])
    rows = [
        (
            f"`{name}`",
            type_words(field),
            _default(field) or ("required" if name in required else ""),
            cell(_described(field)),
        )
        for name, field in schema["properties"].items()
        if name not in left_out
    ]
    head = ("field", "value", "default", "meaning")
    # The description of the object says what its fields mean if they do not say it themselves.
    columns = len(head) if any(row[-1] for row in rows) else len(head) - 1
    return table(head[:columns], [row[:columns] for row in rows])


def type_words(schema: Schema) -> str:
    """Return the type of a value in words; the type of an object leads to its section."""
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
    if kind == "array":
        return f"list of {_inner(schema.get('items'))}"
    if kind == "object":
        return f"table of {_inner(schema.get('additionalProperties'))}"
    if kind == "null":
        return "null"
    return PLAIN.get(str(kind), "any value") + _bounds(schema)


def _inner(schema: Schema | bool | None) -> str:
    """Return the type of what is inside of a list or table."""
    words = type_words(schema) if isinstance(schema, dict) else "any value"
    return f"({words.replace(' or ', ' / ')})" if " or " in words else words


def cell(text: str) -> str:
    """Return a text in one line that can stand in a table."""
    return " ".join(text.replace("``", "`").replace("|", "\\|").split())


def _bounds(schema: Schema) -> str:
    found = [
        f" {words} {schema[key]:g}"
        for key, words in BOUNDS.items()
        if key in schema and abs(schema[key]) < LARGEST
    ]
    return "," + " and".join(found) if found else ""


def _default(schema: Schema) -> str:
    return f"`{json.dumps(schema['default'])}`" if "default" in schema else ""


def _described(schema: Schema) -> str:
    """Return the description of a value, which may stand at one of its alternatives."""
    inside = (_described(one) for one in schema.get("anyOf", ()))
    return str(schema.get("description") or next(filter(None, inside), ""))
