"""How the library runs in a process: its fallbacks, and what it needs."""

import ast
import pickle
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from refusals import raises_code

from submax.core.errors import FallbackWarning, counted_fallbacks, fall_back, standing_for
from submax.core.optional import require_extra
from submax.core.serialization import read_state, state_bytes, tag_of
from submax.core.spaces import Arms
from submax.models.regression.bayesian import Prior


def test_what_is_missing_is_refused_as_an_import_error():
    require_extra("neural", "this", "numpy", "scipy")
    with raises_code("missing-extra") as refused:
        require_extra("neural", "this", "numpy", "there_is_no_such_module")
    assert isinstance(refused.value, ImportError)
    assert "submax[neural]" in str(refused.value)


class Simpler(FallbackWarning):
    """A kind of its own."""


def test_where_nobody_counts_a_fallback_is_a_warning_from_where_it_happened():
    def strategy():
        fall_back(Simpler, "optimistic instead", 7)

    # Counting has ended, although by an error.
    with pytest.raises(KeyError), counted_fallbacks():
        raise KeyError("arm")
    with pytest.warns(Simpler) as told:
        strategy()
    assert told[0].message.decisions == 7
    assert told[0].filename == __file__
    restored = pickle.loads(pickle.dumps(told[0].message))
    assert (str(restored), restored.decisions) == (str(told[0].message), 7)


def test_decisions_of_all_fallbacks_are_counted_without_a_warning():
    with counted_fallbacks() as counts:
        fall_back(FallbackWarning, "uniform instead", 3)
        fall_back(Simpler, "optimistic instead", 40)
        # What is solved once stands for all decisions that share it.
        with standing_for(100):
            fall_back(FallbackWarning, "uniform instead", 3)
    assert counts == [3, 40, 300]


def test_threads_count_fallbacks_for_themselves():
    def count(decisions):
        with counted_fallbacks() as counts:
            for _ in range(200):
                fall_back(FallbackWarning, "uniform instead", decisions)
        return sum(counts)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(count, range(1, 9))) == [200 * each for each in range(1, 9)]


# States as bytes: records are known by tags, and come back as they were


class Own(NamedTuple):
    """A record of a policy of somebody's own."""

    counts: np.ndarray
    name: str


@dataclass(frozen=True)
class Point:
    """Another one, as a dataclass."""

    x: float = 0.0


def test_records_are_read_as_they_were_written():
    given = (Prior(0.5, np.arange(6.0).reshape(2, 3)), Arms(3), {"a": [1, 2.5, None, "x"]}, True)
    (prior, *rest), facts = read_state(state_bytes(given, {"version": 3}))
    assert isinstance(prior, Prior)
    assert prior.noise == 0.5
    np.testing.assert_array_equal(prior.variance, given[0].variance)
    assert tuple(rest) == given[1:]
    assert facts == {"version": 3}


@pytest.mark.parametrize("record", [Own(np.arange(3), "mine"), Point(2.0)], ids=repr)
def test_records_of_an_own_policy_are_looked_for_in_its_module_alone(record):
    data = state_bytes(record, {})
    again, _ = read_state(data, [__name__])
    assert type(again) is type(record)
    assert again[1:] == record[1:] if isinstance(record, Own) else again == record
    with raises_code("invalid-input"):
        read_state(data)


def test_a_class_of_submax_without_a_tag_is_refused():
    untagged = type("Untagged", (), {"__module__": "submax.somewhere"})
    with raises_code("invalid-input"):
        tag_of(untagged())


OLD_FORMAT = state_bytes(Arms(2), {}).replace(b"submax-state-2", b"submax-state-1")


@pytest.mark.parametrize("data", [b"", b"x" * 100, (10**9).to_bytes(8, "little"), OLD_FORMAT])
def test_other_bytes_are_refused(data):
    with raises_code("invalid-input"):
        read_state(data)


@pytest.mark.parametrize("value", [np.array(["a"]), np.array([object()]), {1: 2.0}])
def test_what_would_not_come_back_the_same_is_refused(value):
    with raises_code("invalid-input"):
        state_bytes(value, {})


# Several threads that decode a type for the first time do not end the process

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


@pytest.mark.slow
def test_first_decodes_in_many_threads_survive():
    """Without ``known_type`` this program dies by a segmentation fault in its first rounds."""
    command = [sys.executable, "-c", FIRST_DECODES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "survived\n"


SOURCES = Path(__file__).parents[2] / "src" / "submax"
PLAIN = {"dict", "list", "str", "float", "int"}


def test_every_type_that_is_decoded_is_known():
    kinds = []
    for path in SOURCES.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        # To read all files as Python would take seconds.
        if "msgspec." in text and path != SOURCES / "core" / "decoding.py":
            calls = (one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.Call))
            kinds += [(str(path), ast.unparse(kind)) for call in calls for kind in decoded(call)]
    assert len(kinds) > 15
    for _, kind in kinds:
        assert kind.startswith("known_type(") or set(re.findall(r"\w+", kind)) <= PLAIN, kinds


def decoded(call):
    """The type that a call gives to msgspec, if it is such a call: a list of one, or of none."""
    by_name = [one.value for one in call.keywords if one.arg == "type"]
    match ast.unparse(call.func).split("."):
        case ["msgspec", _, "Decoder"]:
            return call.args[:1] or by_name
        case ["msgspec", "convert"]:
            return call.args[1:2] or by_name
        case ["msgspec", _, "decode"]:
            return by_name
    return []
