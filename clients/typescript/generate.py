"""Write the generated part of the TypeScript client from the server's OpenAPI description.

Run ``python clients/typescript/generate.py`` after a change of the interface. The script writes
``api.js`` and ``api.d.ts`` of the client: one type for each schema, one method for each operation.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[2] / "src" / "submax" / "client" / "javascript"
NOTE = "// This file is generated from the OpenAPI description by clients/typescript/generate.py.\n"
WIDTH = 100
"""Characters in a line of a comment."""
Table = dict[str, Any]


def types_file(description: Table) -> str:
    """The declarations of all schemas and of the class ``Api``."""
    schemas = description["components"]["schemas"]
    parts = [f'{NOTE}import type {{ CallOptions, TransportOptions }} from "./transport.js";\n']
    parts += [_interface(name, schema) for name, schema in sorted(schemas.items())]
    methods = "".join(_signature(one) for one in _operations(description))
    parts.append(
        "/** Every operation of a server, one method for each. */\n"
        "export declare class Api {\n"
        "  constructor(address: string, options?: TransportOptions);\n"
        f"{methods}}}\n"
    )
    return "\n".join(parts)


def code_file(description: Table) -> str:
    """The code of the class ``Api``."""
    methods = "\n".join(_method(one) for one in _operations(description))
    return (
        f'{NOTE}import {{ Transport }} from "./transport.js";\n\n'
        "const part = encodeURIComponent;\n\n"
        "/** Every operation of a server, one method for each. */\n"
        "export class Api {\n"
        "  #transport;\n\n"
        "  constructor(address, options = {}) {\n"
        "    this.#transport = new Transport(address, options);\n"
        f"  }}\n\n{methods}}}\n"
    )


def _operations(description: Table) -> Iterator[Table]:
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            parameters = operation.get("parameters", [])
            yield {
                **operation,
                "path": path,
                "method": method.upper(),
                "word": _camel(operation["operationId"]),
                "in_path": [one for one in parameters if one["in"] == "path"],
            }


def _method(operation: Table) -> str:
    names = [one["name"] for one in operation["in_path"]]
    has_body = "requestBody" in operation
    names += ["body"] * has_body + ["options = {}"]
    path = re.sub(r"{(\w+)}", r"${part(\1)}", operation["path"])
    call = "bytes" if _is_binary(operation) else "call"
    return (
        f"  {operation['word']}({', '.join(names)}) {{\n"
        f'    return this.#transport.{call}("{operation["method"]}", `{path}`, '
        f"{'body' if has_body else 'undefined'}, options);\n"
        "  }\n"
    )


def _signature(operation: Table) -> str:
    given = [f"{one['name']}: {_type(one['schema'])}" for one in operation["in_path"]]
    if "requestBody" in operation:
        optional = "" if operation["requestBody"]["required"] else "?"
        given.append(f"body{optional}: {_type(_schema(operation['requestBody']))}")
    answer = "ArrayBuffer" if _is_binary(operation) else _type(_schema(_success(operation)))
    return (
        f"  /** {operation['summary']} */\n"
        f"  {operation['word']}({', '.join([*given, 'options?: CallOptions'])}): "
        f"Promise<{answer}>;\n"
    )


def _success(operation: Table) -> Table:
    found: Table = next(
        answer for status, answer in operation["responses"].items() if status < "300"
    )
    return found


def _schema(message: Table) -> Table:
    found: Table = next(iter(message["content"].values()))["schema"]
    return found


def _is_binary(operation: Table) -> bool:
    return _schema(_success(operation)).get("format") == "binary"


def _interface(name: str, schema: Table) -> str:
    described = _comment(schema.get("description", ""), "")
    if schema.get("type") != "object" or "properties" not in schema:
        return f"{described}export type {name} = {_type(schema)};\n"
    needed = set(schema.get("required", []))
    fields = "".join(
        f"{_comment(one.get('description', ''), '  ')}"
        f"  {field}{'' if field in needed else '?'}: {_type(one)};\n"
        for field, one in schema["properties"].items()
    )
    return f"{described}export interface {name} {{\n{fields}}}\n"


def _type(schema: Table) -> str:
    """The TypeScript type of a JSON schema.

    >>> _type({"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}]})
    'number[] | null'
    """
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(json.dumps(one) for one in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(map(_type, schema["anyOf"])))
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(dict.fromkeys(_type({**schema, "type": one}) for one in kind))
    if kind == "array":
        inner = _type(schema.get("items", {}))
        return f"({inner})[]" if " " in inner else f"{inner}[]"
    if kind == "object":
        return f"Record<string, {_type(schema.get('additionalProperties') or {})}>"
    plain = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean"}
    return {**plain, "null": "null"}.get(str(kind), "unknown")


def _comment(text: str, indent: str) -> str:
    lines = [line.strip() for line in text.replace("*/", "* /").splitlines()]
    if not any(lines):
        return ""
    if len(lines) == 1 and len(lines[0]) < WIDTH:
        return f"{indent}/** {lines[0]} */\n"
    body = "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines)
    return f"{indent}/**\n{body}{indent} */\n"


def _camel(name: str) -> str:
    first, *others = name.split("-")
    return first + "".join(one.capitalize() for one in others)


def generated() -> dict[str, str]:
    """The generated files by name, from the interface of this checkout."""
    from submax.server.api import OPERATIONS
    from submax.server.openapi import description

    found = description(OPERATIONS)
    return {"api.d.ts": types_file(found), "api.js": code_file(found)}


if __name__ == "__main__":
    for name, text in generated().items():
        (SOURCE / name).write_text(text, encoding="utf-8")
