"""The OpenAPI description of the HTTP interface."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from submax._version import __version__
from submax.web.server.access.key import KEY_PARAMETER
from submax.web.server.interface.answers import Failure
from submax.web.server.interface.messages import BanditName, KeyIdentifier
from submax.web.server.interface.operation import Operation

REFERENCE = "#/components/schemas/{name}"
"""How the description refers to the schema of a named type."""
PATH_PARAMETERS = {
    "name": BanditName,
    "id": KeyIdentifier,
}
"""The types of the parameters in paths, by their names in the braces of ``Operation.path``."""
SECURITY_SCHEMES = {
    "key": {"type": "http", "scheme": "bearer"},
    "browser-key": {"type": "apiKey", "in": "query", "name": KEY_PARAMETER},
}
"""The two places of a key: the header or, for keys for browsers, a query parameter."""
REFUSALS = {
    "400": "Something in the request is wrong, such as a field or a parameter that is not known.",
    "401": "A key is needed.",
    "403": "The key does not allow this.",
    "404": "The bandit, decision, version or key does not exist.",
    "408": "The request was sent too slowly.",
    "409": "Another value is stored under the same name, id or key.",
    "413": "The body is too long.",
    "415": "The body is not JSON.",
    "429": "Too many requests.",
    "431": "The path and the headers are too long.",
    "501": "The server lacks an optional part.",
    "503": "The server or its store cannot answer now; try again.",
}
"""The HTTP statuses of errors; they are described as possible answers of every operation."""


def description(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return an OpenAPI 3.1 document of all operations, with the schemas of their types."""
    types: list[Any] = [Failure, *PATH_PARAMETERS.values()]
    types += [one.body for one in operations if one.body is not None]
    types += [one.answer for one in operations if one.answer is not bytes]
    schema_of, components = _schemas(tuple(types))
    paths: dict[str, Any] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "submax",
            "version": __version__,
            "description": "Bandit decisions over HTTP.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": SECURITY_SCHEMES,
        },
    }


@cache
def _schemas(types: tuple[Any, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schemas of types by their names, and of the types that they refer to.

    They are the same for every application of a process, and take longer than all the rest.
    """
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    return dict(zip(map(repr, types), schemas, strict=True)), components


def _operation(operation: Operation, schema_of: dict[str, Any]) -> dict[str, Any]:
    answer = schema_of.get(repr(operation.answer), {"type": "string", "format": "binary"})
    failure = {"application/json": {"schema": schema_of[repr(Failure)]}}
    found: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": _parameters(operation, schema_of),
        "responses": {
            str(operation.status): {
                "description": "Done.",
                "content": {operation.media: {"schema": answer}},
            },
            **{
                status: {"description": text, "content": failure}
                for status, text in REFUSALS.items()
            },
        },
        "security": _security(operation),
    }
    if operation.slow:
        found["x-slow"] = True
    if operation.body is not None:
        schema = schema_of[repr(operation.body)]
        found["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    return found


def _security(operation: Operation) -> list[dict[str, list[str]]]:
    """The places of a key, one of which is enough; none if no key is needed."""
    if operation.scope is None:
        return []
    header: dict[str, list[str]] = {"key": []}
    return [header, {"browser-key": []}] if operation.takes_key_in_query else [header]


def _parameters(operation: Operation, schema_of: dict[str, Any]) -> list[dict[str, Any]]:
    """The parameters in the path, and those in the query."""
    in_path = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": schema_of[repr(PATH_PARAMETERS[name])],
        }
        for name in re.findall(r"{(\w+)}", operation.path)
    ]
    in_query = [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": text,
            "schema": {"type": "string"},
        }
        for name, text in operation.query.items()
    ]
    return in_path + in_query
