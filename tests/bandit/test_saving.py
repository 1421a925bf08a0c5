"""A bandit that is saved and loaded goes on as if nothing had happened."""

import importlib
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import raises_code

import submax
from submax.bandit.saving import generator_at
from submax.core.errors import Error
from submax.core.serialization import state_bytes
from submax.policies import Thompson
from submax.research.beyond.real_valued import Gridded
from submax.testing import ManualClock

ARMS = ["A", "B", "C"]
NUMBERS = {"x": float, "kind": ["a", "b"]}
BANDITS = {
    "default": {"actions": ARMS},
    "default with a context": {"actions": ARMS, "context": NUMBERS},
    "default with slots": {"actions": {"one": ["a", "b"], "two": ["c", "d", "e"]}},
    "rewards whose levels move": {"actions": ARMS, "rewards": "continuous"},
    "thompson": {"actions": ARMS, "policy": "thompson-1-1"},
    "linucb": {"actions": ARMS, "context": NUMBERS, "policy": "linucb"},
    "a wait": {"actions": ARMS, "reward_wait": 5},
    "a limit": {"actions": ARMS, "no_reward_after": 5, "guard_rails": {"burn_in": 5}},
    "an interval": {"actions": {"price": (0.0, 1.0)}, "policy": "fourier-thompson"},
}
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["decide", "decide", "reward", "reward", "wait", "add", "pause", "resume"]),
        st.integers(0, 5),
    ),
    max_size=30,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "bandit.safetensors"


def took(bandit, clock, steps, start):
    """What a bandit answers to some steps; the first of its decisions has the number ``start``."""
    answers, number = [], start
    with_context = bool(bandit.settings.context.width)
    plain = bandit.menu.plain
    for verb, value in steps:
        clock.now += 1 + 3 * (verb == "wait")
        try:
            if verb == "decide":
                context = {"x": 3.0 * value, "kind": "ab"[value % 2]} if with_context else None
                decision = bandit.decide(context, id=f"d{number}")
                answers.append((decision.action, decision.propensity, decision.version))
                number += 1
            elif verb == "reward":
                given = f"d{number - 1 - value}", float(value % 2)
                answers.append(bandit.reward(*given, key="k"))
            elif verb != "wait" and plain:
                getattr(bandit, verb)(f"new {number}" if verb == "add" else "C")
        except Error as error:
            answers.append(error.code)
    return answers


@pytest.mark.parametrize("kind", BANDITS)
@settings(max_examples=6)
@given(before=STEPS, after=STEPS, seed=st.integers(0, 99))
def test_saving_and_loading_equals_going_on(tmp_path_factory, kind, before, after, seed):
    path = tmp_path_factory.mktemp("saved") / "bandit.safetensors"
    clock = ManualClock()
    bandit = submax.Bandit(**BANDITS[kind], seed=seed, clock=clock)
    took(bandit, clock, before, 0)
    decided = sum(verb == "decide" for verb, _ in before)
    bandit.save(path)
    then = clock.now
    expected = took(bandit, clock, after, decided)
    clock.now = then
    loaded = submax.Bandit.load(path, clock=clock)
    assert took(loaded, clock, after, decided) == expected
    assert loaded.counts() == bandit.counts()


def test_a_loaded_bandit_goes_on_with_the_same_random_stream_for_many_decisions(path):
    rng = np.random.Generator(np.random.SFC64(7))
    bandit = submax.Bandit(ARMS, policy="thompson-1-1", rng=rng)
    _rewarded(bandit, 50)
    bandit.save(path)
    assert _rewarded(submax.Bandit.load(path), 100) == _rewarded(bandit, 100)


def _rewarded(bandit, rounds):
    found = []
    for number in range(rounds):
        decision = bandit.decide()
        # No arm is better, so that actions stay random.
        bandit.reward(decision.id, float(number % 2))
        found.append((decision.action, decision.propensity, decision.version))
    return found


def test_a_policy_that_was_an_object_is_given_again_unless_it_can_be_written(path):
    class Stubborn(Thompson):
        """A policy whose class has no name by which it could be imported."""

    bandit = submax.Bandit(ARMS, policy=Stubborn())
    saved = _rewarded(bandit, 20)[-1]
    bandit.save(path)
    for others in ({}, {"policy": Stubborn(alpha=2.0)}, {"policy": Thompson()}):
        with raises_code("invalid-input"):
            submax.Bandit.load(path, **others)
    loaded = submax.Bandit.load(path, policy=Stubborn())
    assert _rewarded(loaded, 20)[-1][2] > saved[2] > 0
    submax.Bandit(ARMS, policy=Thompson(beta=3.0)).save(path)
    assert submax.Bandit.load(path).policy == Thompson(beta=3.0)


def test_a_policy_from_a_file_is_run_only_if_trusted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = "from submax.policies.thompson import Thompson\nclass Mine(Thompson): pass\n"
    Path("mine.py").write_text(source)
    bandit = submax.Bandit(ARMS, policy={"kind": "mine.py:Mine"})
    _rewarded(bandit, 5)
    bandit.save("bandit.safetensors")
    with raises_code("invalid-input"):
        submax.Bandit.load("bandit.safetensors")
    assert len(_rewarded(submax.Bandit.load("bandit.safetensors", trust=True), 5)) == 5


def test_a_file_that_is_no_bandit_is_refused(path, tmp_path):
    contents = {
        "empty": b"",
        "text": b"hello",
        "pickle": pickle.dumps({"a": 1}),
        "another state": state_bytes((1, 2), {}),
        "a newer format": state_bytes((1, 2), {"bandit": {"format": 99, "policy": "ucb1"}}),
        "no bandit inside": state_bytes((1, 2), {"bandit": {"format": 1, "policy": "ucb1"}}),
    }
    for data in contents.values():
        path.write_bytes(data)
        with raises_code("invalid-input"):
            submax.Bandit.load(path)
    for nothing in (tmp_path / "nowhere", 3):
        with raises_code("invalid-input"):
            submax.Bandit.load(nothing)
    with raises_code("invalid-input"):
        submax.Bandit(ARMS).save(tmp_path / "nowhere" / "bandit.safetensors")


def test_a_damaged_file_is_refused(path, seed):
    bandit = submax.Bandit(ARMS, policy="thompson-1-1")
    _rewarded(bandit, 30)
    bandit.save(path)
    whole, rng = path.read_bytes(), np.random.default_rng(seed)
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(bytes(damaged))
        with raises_code("invalid-input"):
            submax.Bandit.load(path)


def test_an_unknown_kind_of_random_stream_is_refused():
    with raises_code("invalid-input"):
        generator_at({"bit_generator": "os"})


DERIVED = """
from dataclasses import dataclass
import weighted

@dataclass(frozen=True)
class Derived(weighted.Weighted):
    weights: tuple[float, ...] = (1.0, 2.0)
"""


@pytest.mark.parametrize("inside", [lambda policy: policy, Gridded], ids=["alone", "in another"])
def test_a_state_that_is_defined_beside_the_base_class_is_loaded(
    path, tmp_path, monkeypatch, inside
):
    (tmp_path / "derived_policy.py").write_text(DERIVED)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "derived_policy", raising=False)
    derived = importlib.import_module("derived_policy").Derived
    bandit = submax.Bandit(["A", "B"], policy=inside(derived()))
    bandit.reward(bandit.decide().id, 1.0)
    bandit.refit()
    bandit.save(path)
    again = submax.Bandit.load(path, policy=inside(derived()))
    assert again.decide().action in ("A", "B")
    with raises_code("invalid-input"):
        submax.Bandit.load(path, policy=inside(derived((1.0, 1.0))))


def test_a_saved_bandit_and_a_store_are_told_apart(path, tmp_path):
    store = tmp_path / "store.db"
    submax.open(store, actions=["A", "B"], background=False).close()
    submax.Bandit(["A", "B"]).save(path)
    with raises_code("invalid-input"):
        submax.open(path)
    with raises_code("invalid-input"):
        submax.Bandit.load(store)
    submax.Bandit.load(path)
    submax.open(store, background=False).close()
