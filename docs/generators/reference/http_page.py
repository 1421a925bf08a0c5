"""The reference of the HTTP interface, from the OpenAPI description of the server."""

from collections.abc import Iterator, Sequence
from inspect import cleandoc
from pathlib import Path

from docs.generators.markdown_tables import table
from docs.generators.reference.schema_words import Schema, cell, fields_table, type_words

from submax.web.server.interface.description import REFUSALS, description
from submax.web.server.interface.operation import Operation
from submax.web.server.interface.operations.bandits import bandit_operations
from submax.web.server.interface.operations.operating import operating_operations
from submax.web.server.interface.operations.requests import request_operations
from submax.web.server.interface.operations.server import server_operations
from submax.web.server.pages.operations import page_operations

PAGE = Path(__file__).parents[2] / "reference" / "http.md"
GROUPS = {
    "Decisions and rewards": request_operations,
    "Bandits": bandit_operations,
    "Operating a bandit": operating_operations,
    "Keys and the server": server_operations,
}
INTRO = """# HTTP interface

This page is generated from the OpenAPI description of the server by `make docs`; a server gives
the description itself at `/openapi.json`, and numbers for Prometheus at `/metrics`. [The
guide](../how-to/server.md) shows the interface at work.

Bodies are JSON (`Content-Type: application/json`). A request whose operation needs a scope has
a key with this scope in the header `Authorization: Bearer KEY`, unless the server has no keys
yet; if the scope is `decide` or `reward`, a [key for
browsers](../how-to/server.md#from-a-web-page) may also stand behind the address, as `?key=KEY`.
Unknown fields are refused, and so are query parameters that the operation does not have:
a misspelled one is never ignored. An error is answered by a sentence for people and by a
[code](errors.md) for programs: `{"error": "…", "code": "…"}`; nothing was changed then."""
PAGES_INTRO = """A browser gets these addresses as pages of the dashboard. A program gets the same
numbers as JSON, there and at the address with `.json` behind it; [their fields](dashboard-data.md)
have a page of their own."""


def page() -> str:
    """Return the text of the page."""
    groups = {title: list(make()) for title, make in GROUPS.items()}
    described = description([one for each in groups.values() for one in each])
    parts = [INTRO, table(("status", "meaning"), REFUSALS.items())]
    for title, operations in groups.items():
        parts += [f"## {title}", _overview(operations)]
        parts += [_operation(one, described) for one in operations]
    parts += ["## Pages", PAGES_INTRO, _overview(page_operations(), linked=False)]
    parts += ["## Types of messages", *type_sections(described["components"]["schemas"])]
    return "\n\n".join(parts) + "\n"


def _overview(operations: Sequence[Operation], linked: bool = True) -> str:
    rows = [
        (
            f"[`{one.method} {one.path}`](#{one.name})" if linked else f"`{one.path}`",
            f"`{one.scope}`" if one.scope else "none",
            cell(one.summary),
        )
        for one in operations
    ]
    return table(("operation" if linked else "page", "scope", "what it does"), rows)


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
