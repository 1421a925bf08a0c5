"""Several threads that decode a type for the first time do not end the process."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "submax"
PLAIN = {"dict", "list", "str", "float", "int"}
FIRST_DECODES = """
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
import msgspec
from submax.schema.known_type import known_type

THREADS = 8
sys.setswitchinterval(1e-6)


def decode(kind, data, together):
    together.wait()
    return msgspec.msgpack.decode(data, type=known_type(kind))


with ThreadPoolExecutor(THREADS) as pool:
    for number in range(400):
        inner = msgspec.defstruct("Inner", [(f"f{i}", "int | str | None", 0) for i in range(20)])
        outer = msgspec.defstruct("Outer", [(f"g{i}", dict[str, inner]) for i in range(20)])
        data = msgspec.msgpack.encode({f"g{i}": {"a": {"f1": 1}} for i in range(20)})
        together = Barrier(THREADS)
        found = list(pool.map(decode, [outer] * THREADS, [data] * THREADS, [together] * THREADS))
        assert all(one.g3["a"].f1 == 1 for one in found)
print("survived")
"""


@pytest.mark.slow
def test_first_decodes_in_many_threads_survive():
    """Without ``known_type`` this program dies by a segmentation fault in its first rounds."""
    command = [sys.executable, "-c", FIRST_DECODES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "survived\n"


def test_every_type_that_is_decoded_is_known():
    calls = [
        (path, call)
        for path in SOURCES.rglob("*.py")
        if path.name != "known_type.py"
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
    ]
    decoding = [(path, kind) for path, call in calls if (kind := _decoded(call)) is not None]
    assert len(decoding) > 20
    unknown = [
        f"{path.relative_to(SOURCES)}:{kind.lineno}" for path, kind in decoding if not _safe(kind)
    ]
    assert unknown == []


def _decoded(call: ast.Call) -> ast.expr | None:
    """The type that a call gives to msgspec, if it is such a call."""
    name = ast.unparse(call.func)
    if name in ("msgspec.json.Decoder", "msgspec.msgpack.Decoder"):
        return call.args[0]
    if name == "msgspec.convert":
        return call.args[1]
    if name in ("msgspec.json.decode", "msgspec.msgpack.decode"):
        return next((one.value for one in call.keywords if one.arg == "type"), None)
    return None


def _safe(kind: ast.expr) -> bool:
    names = {one.id for one in ast.walk(kind) if isinstance(one, ast.Name)}
    is_known = isinstance(kind, ast.Call) and ast.unparse(kind.func) == "known_type"
    return is_known or names <= PLAIN
