"""The reference of the HTTP interface, from the OpenAPI description of the server."""

from collections.abc import Iterator, Sequence
from inspect import cleandoc
from pathlib import Path

from docs.generators.markdown_tables import table
from docs.generators.reference.schema_words import Schema, cell, fields_table, type_words

from submax.server.api import OPERATIONS, Operation
from submax.server.openapi import REFUSALS, TAGS, description

PAGE = Path(__file__).parents[2] / "reference" / "http.md"
INTRO = """# HTTP interface

This page is generated from the OpenAPI description of the server by `make docs`; a server gives
the description itself at `/openapi.json`, and numbers for Prometheus at `/metrics`. [The
guide](../how-to/server.md) shows the interface at work.

Bodies are JSON (`Content-Type: application/json`). A request whose operation needs a scope has
a key with this scope in the header `Authorization: Bearer KEY`, unless the server has no keys
yet; if the scope is `decide` or `reward`, a [browser
key](../how-to/browser-keys.md) may also be in the URL, as `?key=KEY`.
Unknown fields are refused, and so are query parameters that the operation does not have:
a misspelled one is never ignored. An error is answered by a sentence for people and by a
[code](errors.md) for programs: `{"error": "…", "code": "…"}`; nothing was changed then."""


def page() -> str:
    """Return the text of the page."""
    shown = [one for one in OPERATIONS if not one.hidden]
    groups = {tag: [one for one in shown if one.tag == tag] for tag in TAGS}
    described = description(shown)
    parts = [INTRO, table(("status", "meaning"), REFUSALS.items())]
    for title, operations in groups.items():
        parts += [f"## {title}", _overview(operations)]
        parts += [_operation(one, described) for one in operations]
    parts += ["## Types of messages", *type_sections(described["components"]["schemas"])]
    return "\n\n".join(parts) + "\n"


def _overview(operations: Sequence[Operation]) -> str:
    rows = [
        (
            f"[`{one.method} {one.path}`](#{one.name})",
            f"`{one.scope}`" if one.scope else "none",
            cell(one.summary),
        )
        for one in operations
    ]
    return table(("operation", "scope", "what it does"), rows)


def _operation(operation: Operation, described: Schema) -> str:
    found = described["paths"][operation.path][operation.method.lower()]
    key = f"A key with the scope `{operation.scope}`" if operation.scope else "No key is needed"
    parts = [f"### {operation.name}", f"```text\n{operation.method} {operation.path}\n```"]
    parts += [f"{operation.summary} {key}."]
    if operation.query:
        rows = [(f"`{name}`", cell(text)) for name, text in operation.query.items()]
        parts.append(table(("parameter", "meaning"), rows))
    facts = [f"- Body: {content_words(found['requestBody'])}"] if operation.body else []
    answer = found["responses"][str(operation.status)]
    facts.append(f"- Answer: status {operation.status}, {content_words(answer)}")
    return "\n\n".join([*parts, "\n".join(facts)])


def content_words(message: Schema) -> str:
    """Return the type of a body or an answer in words, with a link to its section."""
    ((media, content),) = message["content"].items()
    schema = content["schema"]
    return type_words(schema) if media == "application/json" else f"`{media}`"


def type_sections(schemas: dict[str, Schema]) -> Iterator[str]:
    """Yield the parts of the sections that describe the fields of all types."""
    for name, schema in sorted(schemas.items()):
        yield f"### Type {name}"
        if text := schema.get("description"):
            yield cleandoc(text).replace("``", "`")
        yield fields_table(schema) if schema.get("properties") else _plain(schema)


def _plain(schema: Schema) -> str:
    return f"{type_words(schema)[:1].upper()}{type_words(schema)[1:]}."
