"""The OpenAPI description of the pages as data."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from submax._version import __version__
from submax.web.results_server.result_page import ResultPage
from submax.web.server.interface.answers import Failure
from submax.web.server.interface.description import REFERENCE

REFUSALS = {
    "400": "A query parameter is not known, or its value not allowed.",
    "403": "The request does not come from this machine.",
    "404": "The folder or the configuration does not exist.",
    "500": "The page has a defect.",
}


def description(pages: Sequence[ResultPage]) -> dict[str, Any]:
    """Return an OpenAPI 3.1 document of all pages."""
    types = [Failure, *(one.answer for one in pages)]
    schemas, components = msgspec.json.schema_components(types, ref_template=REFERENCE)
    failure = {"application/json": {"schema": schemas[0]}}
    refusals = {
        status: {"description": text, "content": failure} for status, text in REFUSALS.items()
    }
    paths = {}
    for one, schema in zip(pages, schemas[1:], strict=True):
        answer = {"description": "Done.", "content": {"application/json": {"schema": schema}}}
        operation = {
            "operationId": one.name,
            "summary": one.summary,
            "parameters": _parameters(one),
            "responses": {"200": answer, **refusals},
        }
        paths[one.path] = {"get": operation}
    return {
        "openapi": "3.1.0",
        "info": {"title": "submax results", "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }


def _parameters(page: ResultPage) -> list[dict[str, Any]]:
    text = {"type": "string"}
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in re.findall(r"{(\w+)}", page.path)
    ]
    in_query = [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": words,
            "schema": {"type": "array", "items": text} if name == "policy" else text,
        }
        for name, words in page.query.items()
    ]
    return in_path + in_query
