import time
from threading import Thread

import pytest
from refusals import raises_code

from submax.core.errors import StoreError
from submax.core.rewards.binary import Binary
from submax.core.rewards.continuous import Continuous
from submax.core.rewards.counts import Counts
from submax.core.rewards.discrete import Discrete
from submax.policies import POLICIES
from submax.web.server.declaring.trial import possible_rewards, try_declaration
from submax.web.server.declaring.trial_process import TrialProcess

POLICY = """
import time
from dataclasses import dataclass
from submax.policies.classic.random import Random

@dataclass(frozen=True)
class SlowDecision(Random):
    def probabilities(self, state, context):
        time.sleep(60)

@dataclass(frozen=True)
class SlowUpdate(Random):
    def update(self, state, feedback, rng):
        time.sleep(60)

@dataclass(frozen=True)
class Failing(Random):
    def update(self, state, feedback, rng):
        raise ZeroDivisionError("no luck")

@dataclass(frozen=True)
class Greedy(Random):
    def update(self, state, feedback, rng):
        return bytearray(10**13)

@dataclass(frozen=True)
class Ending(Random):
    def update(self, state, feedback, rng):
        import os
        os._exit(3)
"""
ARMS = {"actions": ["A", "B"]}


@pytest.fixture
def policy(tmp_path):
    file = tmp_path / "policy.py"
    file.write_text(POLICY)
    return lambda name: {**ARMS, "policy": f"{file}:{name}"}


@pytest.mark.parametrize(
    "declaration",
    [
        ARMS,
        {**ARMS, "context": {"age": "number", "country": ["fr", "de"]}},
        {"actions": {"title": ["A", "B"], "layout": ["x", "y"]}},
        {"actions": {"price": [1.0, 20.0]}, "policy": "fourier-thompson"},
        {**ARMS, "rewards": {"kind": "continuous", "low": 5}, "default_reward": None},
        {**ARMS, "rewards": "counts", "combine": "sum", "default_reward": None},
        {**ARMS, "reward_wait": 0},
        {**ARMS, "reward_wait": 0, "no_reward_after": 1e9},
        {**ARMS, "reward_wait": 1e9},
        {**ARMS, "guard_rails": {"burn_in": 10**6, "holdout": 0.5, "baseline": "A"}},
    ],
    ids=str,
)
def test_good_declarations_pass(declaration):
    try_declaration("page", declaration)


@pytest.mark.parametrize(
    "scale",
    [
        *(one for cls in (Binary, Continuous, Counts, Discrete) for one in cls.examples()),
        Continuous(high=-3.0),
        Continuous(low=2.0, high=2.5),
    ],
    ids=repr,
)
def test_the_rewards_of_a_trial_are_possible_and_differ(scale):
    assert len(set(possible_rewards(scale))) >= 2


def test_a_policy_that_fails_to_learn_is_refused(policy):
    with raises_code("invalid-input"):
        try_declaration("page", policy("Failing"))


def test_without_guard_rails_the_policy_itself_decides(policy):
    """With a burn-in a slow policy would not be noticed."""
    trial = TrialProcess(seconds=4.0)
    declaration = {**policy("SlowDecision"), "guard_rails": {"burn_in": 10**6}}
    with raises_code("invalid-input"):
        trial.check("page", declaration)
    trial.close()


def test_one_process_refuses_what_is_slow_wrong_or_large_and_goes_on(policy):
    trial = TrialProcess(seconds=8.0)
    trial.check("page", ARMS)
    first = trial._process.pid
    for name, words in {
        "Failing": "no luck",
        "Greedy": "MemoryError",
        "SlowUpdate": "took longer than the 8 seconds",
        "Ending": "has ended",
    }.items():
        with raises_code("invalid-input"):
            trial.check("page", policy(name))
        trial.check("page", ARMS)
    assert trial._process.pid != first
    with raises_code("invalid-input"):
        trial.check("page", {})
    trial.close()
    with raises_code("store-unavailable"):
        trial.check("page", ARMS)


def test_closing_ends_a_trial_under_way(policy):
    trial, errors = TrialProcess(), []

    def check():
        try:
            trial.check("page", policy("SlowUpdate"))
        except StoreError as error:
            errors.append(str(error))

    thread = Thread(target=check)
    thread.start()
    while trial._process is None or trial._process.pid is None:
        time.sleep(0.01)
    begin = time.monotonic()
    trial.close()
    thread.join(10)
    assert time.monotonic() - begin < 5
    assert errors == ["the server stops, so that the declaration was not tried: send it again"]


def presets():
    """All presets that train no networks, each with actions for which it can work."""
    found = {name: one for cls in POLICIES.classes() for name, one in cls.presets().items()}
    for name, policy in found.items():
        if not policy.facts.trains_models:
            is_real = "grid" in name or "fourier" in name
            pair = {"first": ["A", "B"], "second": ["A", "B"]}
            listed = pair if policy.facts.needs_pairs else ["A", "B"]
            yield name, {"price": [1.0, 20.0]} if is_real else listed


@pytest.mark.filterwarnings("ignore:the policy .* does not look at the context")
def test_every_preset_without_networks_passes():
    for name, actions in presets():
        scale = {"kind": "continuous", "low": 0, "high": 1} if "price" in actions else "binary"
        declaration = {"actions": actions, "rewards": scale, "policy": name}
        try_declaration("page", {**declaration, "context": {"age": "number"}})
