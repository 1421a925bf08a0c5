"""The TypeScript client is generated from the description, and runs in Node against a server."""

import importlib.util
import json
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from submax._version import __version__

FOLDER = Path(__file__).parents[3] / "clients" / "typescript"
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
needs_tsc = pytest.mark.skipif(shutil.which("tsc") is None, reason="tsc is not installed")


@pytest.fixture(scope="module")
def generator():
    found = importlib.util.spec_from_file_location("generate", FOLDER / "generate.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def run(*command, folder):
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_generated_files_are_current(generator):
    for name, text in generator.generated().items():
        assert (FOLDER / "src" / name).read_text(encoding="utf-8") == text, (
            "run python clients/typescript/generate.py"
        )


def test_the_package_has_the_version_of_the_server():
    package = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    # Packages of npm separate a release candidate by a hyphen, 1.0.0-rc.1 for 1.0.0rc1.
    assert package["version"] == __version__.replace("rc", "-rc.")


def test_every_operation_and_every_type_is_there(generator, http):
    description = http.get("/openapi.json").json()
    types = generator.types_file(description)
    for schema in description["components"]["schemas"]:
        assert re.search(rf"export (interface|type) {schema}\b", types)
    for methods in description["paths"].values():
        for operation in methods.values():
            assert f"  {generator._camel(operation['operationId'])}(" in types


def test_parameters_in_a_query_are_options(generator):
    operation = {
        "operationId": "read-lift",
        "summary": "Lift.",
        "parameters": [
            {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}},
            {"name": "level", "in": "query", "schema": {"type": "number"}},
        ],
        "responses": {"200": {"content": {"application/json": {"schema": {"type": "object"}}}}},
    }
    description = {
        "components": {"schemas": {}},
        "paths": {"/bandits/{name}/lift": {"get": operation}},
    }
    assert "query?: { level?: number }" in generator.types_file(description)
    assert (
        '"GET", `/bandits/${part(name)}/lift`, undefined, options, query)'
        in generator.code_file(description)
    )


@needs_node
@pytest.mark.slow
def test_the_tests_of_the_client_pass_in_node():
    run("node", "--test", "test/", folder=FOLDER)


@needs_node
@needs_tsc
@pytest.mark.slow
def test_the_example_is_typed_and_runs_against_a_server(serve, tmp_path):
    server = serve(tmp_path / "page.db")
    run("tsc", "-p", ".", "--outDir", tmp_path / "built", folder=FOLDER)
    shutil.copytree(FOLDER / "src", tmp_path / "built" / "src")
    shutil.copy(FOLDER / "package.json", tmp_path / "built")
    server.wait_ready()
    example = tmp_path / "built" / "examples" / "visit.js"
    for _ in range(2):
        assert "visits Set(1) { 'accepted' }" in run(
            "node", example, server.address, folder=tmp_path
        )
    # The example of the README, with the bandit that it names.
    (block,) = re.findall(r"```js\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)
    declared = {"name": "homepage", "actions": ["A", "B"], "context": {"country": ["NO", "SE"]}}
    answer = httpx.post(f"{server.address}/bandits", json=declared, timeout=90)
    assert answer.status_code == 201
    readme = tmp_path / "built" / "readme.mjs"
    block = block.replace("http://127.0.0.1:8000", server.address)
    readme.write_text(f"{block}console.log(receipt.status);\n")
    assert run("node", readme, folder=tmp_path) == "accepted\n"
