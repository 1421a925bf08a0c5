"""The OpenAPI description of the HTTP interface, made from the operations and their types."""

import re
from collections.abc import Iterable
from functools import cache
from http import HTTPStatus
from typing import Any

import msgspec

from submax._version import __version__
from submax.server.api import DECIDING, OPERATING, SERVER, Operation
from submax.server.limits import CODES
from submax.server.messages import BanditName, Decoder, Failure, Identifier, KeyIdentifier

SCHEMES = {"key": {"type": "http", "scheme": "bearer"}}
REFERENCE = "#/components/schemas/{name}"
"""How the description refers to the schema of a named type."""
TAGS = {
    DECIDING: "What an application calls.",
    OPERATING: "Bandits, their settings, arms, versions and results.",
    SERVER: "Keys, the audit, and the state of the server.",
}
REFUSALS = {str(one): HTTPStatus(one).phrase for one in (*CODES, 409, 431, 501)}
"""The HTTP statuses of errors; they are described as possible answers of every operation."""


def description(operations: Iterable[Operation]) -> dict[str, Any]:
    """An OpenAPI 3.1 document of all operations but those for pages of this server."""
    shown = [each for each in operations if not each.hidden]
    types: list[Any] = [Failure, BanditName, Identifier, KeyIdentifier]
    types += [each.body for each in shown if each.body is not None]
    types += [each.answer for each in shown if each.answer is not bytes]
    schema_of, components = _schemas(tuple(types))
    paths: dict[str, Any] = {}
    for each in shown:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "submax",
            "version": __version__,
            "description": "Bandit decisions over HTTP.",
        },
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": SCHEMES},
    }


@cache
def _schemas(types: tuple[Any, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schemas of types by their names, and of the types that they refer to.

    They are the same for every application of a process, and take longer than all the rest.
    """
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    for schema in components.values():
        for field in schema.get("properties", {}).values():
            # Generators of clients take a field with a default of null as one that is always sent.
            if field.get("default", 0) is None:
                del field["default"]
    return dict(zip(map(repr, types), schemas, strict=True)), components


def _operation(operation: Operation, schema_of: dict[str, Any]) -> dict[str, Any]:
    answer = schema_of.get(repr(operation.answer), {"type": "string", "format": "binary"})
    failure = {"application/json": {"schema": schema_of[repr(Failure)]}}
    failures = {one: {"description": text, "content": failure} for one, text in REFUSALS.items()}
    number = KeyIdentifier if operation.path.startswith("/keys") else Identifier
    types = {"name": BanditName, "id": number}
    described: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.tag],
        "summary": operation.summary,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": schema_of[repr(types[name])]}
            for name in re.findall(r"{(\w+)}", operation.path)
        ],
        "responses": {
            str(operation.status): {
                "description": "Done.",
                "content": {operation.media: {"schema": answer}},
            },
            **failures,
        },
        "security": [] if operation.scope is None else [{"key": []}],
    }
    if operation.body is not None:
        content = {"schema": schema_of[repr(operation.body)]}
        described["requestBody"] = {
            "required": not Decoder(operation.body).when_empty,
            "content": {"application/json": content},
        }
    return described
