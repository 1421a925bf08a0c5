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
from submax.core.decoding import known_type

THREADS = 8
sys.setswitchinterval(1e-6)


def decode(kind, data, together):
    together.wait()
    return msgspec.msgpack.decode(data, type=known_type(kind))


with ThreadPoolExecutor(THREADS) as pool:
    for number in range(100):
        inner = msgspec.defstruct("Inner", [(f"f{i}", "int | str | None", 0) for i in range(20)])
        outer = msgspec.defstruct("Outer", [(f"g{i}", dict[str, inner]) for i in range(20)])
        data = msgspec.msgpack.encode({f"g{i}": {"a": {"f1": 1}} for i in range(20)})
        together = Barrier(THREADS)
        found = list(pool.map(decode, [outer] * THREADS, [data] * THREADS, [together] * THREADS))
        assert all(one.g3["a"].f1 == 1 for one in found)
print("survived")
"""
BY_NAME = 2**31
PLACE_OF_TYPE = {
    "msgspec.json.Decoder": 0,
    "msgspec.msgpack.Decoder": 0,
    "msgspec.convert": 1,
    "msgspec.json.decode": BY_NAME,
    "msgspec.msgpack.decode": BY_NAME,
}
"""Which argument of each function is the type, if it is not given by its name."""


@pytest.mark.slow
def test_first_decodes_in_many_threads_survive():
    """Without ``known_type`` this program dies by a segmentation fault in its first rounds."""
    command = [sys.executable, "-c", FIRST_DECODES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "survived\n"


def test_every_type_that_is_decoded_is_known():
    texts = {path: path.read_text(encoding="utf-8") for path in SOURCES.rglob("*.py")}
    decoding = [
        (path, kind)
        for path, text in texts.items()
        # To read all files as Python would take seconds.
        if path != SOURCES / "core" / "decoding.py" and any(name in text for name in PLACE_OF_TYPE)
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call) and (kind := decoded(call)) is not None
    ]
    assert len(decoding) > 20
    assert [f"{path}:{kind.lineno}" for path, kind in decoding if not safe(kind)] == []


def decoded(call: ast.Call) -> ast.expr | None:
    """The type that a call gives to msgspec, if it is such a call."""
    place = PLACE_OF_TYPE.get(ast.unparse(call.func))
    if place is None:
        return None
    by_keyword = [one.value for one in call.keywords if one.arg == "type"]
    return (call.args[place : place + 1] + by_keyword + [None])[0]


def safe(kind: ast.expr) -> bool:
    names = {one.id for one in ast.walk(kind) if isinstance(one, ast.Name)}
    is_known = isinstance(kind, ast.Call) and ast.unparse(kind.func) == "known_type"
    return is_known or names <= PLAIN
