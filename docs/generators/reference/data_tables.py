"""The sections of pages that are also data: addresses, parameters and fields."""

from docs.generators.markdown_tables import table
from docs.generators.reference.http_page import content_words, type_sections
from docs.generators.reference.schema_words import Schema, cell


def data_sections(intro: str, described: Schema) -> str:
    """Return a page with the addresses and the types of an OpenAPI description."""
    rows, parameters = [], []
    for path, methods in described["paths"].items():
        found = methods["get"]
        address = "/index.json" if path == "/" else f"{path}.json"
        answer = content_words(found["responses"]["200"])
        rows.append((f"`{address}`", answer, cell(found["summary"])))
        parameters += [
            (f"`{address}`", f"`{one['name']}`", cell(one["description"]))
            for one in found.get("parameters", ())
            if one["in"] == "query"
        ]
    parts = [intro, "## Addresses", table(("address", "answer", "what it shows"), rows)]
    parts += [
        "Some take parameters behind a `?`. Any other parameter is refused with the status 400:",
        table(("address", "parameter", "meaning"), parameters),
        "## Types of answers",
        *type_sections(described["components"]["schemas"]),
    ]
    return "\n\n".join(parts) + "\n"
