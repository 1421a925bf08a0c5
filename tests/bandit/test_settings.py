"""One declaration for Python, TOML, HTTP and the store."""

import os
import subprocess
import sys
import typing

import pytest
from refusals import raises_code

import submax
from submax.bandit.names import new_identifier
from submax.bandit.settings import DECLARED_TYPES, Declaration
from submax.server import messages

ARMS = ["A", "B"]


def test_python_and_the_server_declare_the_same_settings():
    assert set(typing.get_type_hints(Declaration)) == set(DECLARED_TYPES)
    words = set(messages.Create.__struct_fields__) - {"name"}
    assert words == set(DECLARED_TYPES)


@pytest.mark.parametrize(
    ("word", "value"),
    [("epsilon", 0.1), ("holdout", 0.2), ("distribution", (0.0, 1.0)), ("smoothing", 1.0)],
)
def test_a_word_that_belongs_to_the_policy_or_guard_rails_is_refused(word, value):
    for declare in (submax.Bandit, lambda arms, **words: submax.open(":memory:", **words)):
        with raises_code("invalid-input", word):
            declare(ARMS, **{word: value})


def test_ids_are_unique_and_sort_by_time():
    made = [new_identifier() for _ in range(1000)]
    assert len(set(made)) == len(made)
    assert [one[:13] for one in made] == sorted(one[:13] for one in made)
    assert {len(one) for one in made} == {36}
    assert {one[14] for one in made} == {"7"}
    assert {one[19] for one in made} == set("89ab")


FORKED = """
import os
from submax.bandit.names import new_identifier

new_identifier()
if os.fork():
    os.wait()
print(*[new_identifier()[14:] for _ in range(5)], flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_process_that_was_forked_makes_other_ids():
    # In a process of its own, because libraries of this one have threads, which forks do not copy.
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, check=True
    )
    made = done.stdout.split()
    assert len(made) == len(set(made)) == 10
