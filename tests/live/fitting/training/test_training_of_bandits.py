"""Bandits whose policies train models: where that happens, and that decisions go on."""

import json
import os
import subprocess
import sys
from threading import Thread

import pytest
from waiting import wait_until

from submax.live.bandits.bandit import LiveBandit
from submax.live.bandits.open import open_bandit
from submax.live.store.memory_store import MemoryStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.policies import make_policy

NETWORK = {
    "kind": "reward-conditioned",
    "estimator": {"kind": "softmax", "hidden": 4, "training": {"steps": 20}},
    "strategy": "submax",
}
WAIT = 5.0


def fed(bandit, clock, rows=30):
    fields = bandit.settings.context.names
    for number in range(rows):
        name, context = f"{clock.now:.0f}-{number}", dict.fromkeys(fields, number % 7)
        # One action is eligible, so that the log is always the same.
        bandit.decide(context or None, id=name, eligible=["AB"[number % 2]])
        bandit.reward(name, float(number % 3 == 0))
    clock.now += WAIT
    return bandit


def opened(place, policy, clock, **options):
    words = {"actions": ["A", "B"], "reward_wait": WAIT, "seed": 7}
    if policy == NETWORK:
        words["context"] = {"x": float}
    options = {"background": False, "clock": clock, **options}
    return open_bandit(place, policy=policy, name="page", **words, **options)


IN_A_FILE = """
import json, sys
from submax.testing import ManualClock
from tests.live.fitting.training.test_training_of_bandits import NETWORK, fed, opened
clock = ManualClock()
with opened(sys.argv[1], NETWORK, clock) as bandit:
    model = fed(bandit, clock).refit().fitted.model
    version = bandit.decide({"x": 1.0}).version
print(json.dumps([model, version, "jax" in sys.modules]))
"""


def trained_by_another_process(folder):
    """The model and the version of a network, and whether the process that decides imports jax."""
    # It imports this file, and so what this file imports.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", IN_A_FILE, folder / "page.db"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)
    return json.loads(done.stdout)


def test_the_process_that_decides_does_not_import_jax(tmp_path):
    _, version, imported = trained_by_another_process(tmp_path)
    assert version == 1
    assert not imported


@pytest.mark.soak
def test_a_network_is_the_same_if_another_process_trains_it(tmp_path, clock):
    model, *_ = trained_by_another_process(tmp_path)
    with opened(MemoryStore(clock), NETWORK, clock) as bandit:
        assert fed(bandit, clock).refit().fitted.model == model


def test_a_policy_object_that_cannot_be_written_down_is_trained_here(setup, clock, tmp_path):
    policy = make_policy(setup.policy())
    object.__setattr__(policy, "how", ("works", object()))
    with opened(tmp_path / "page.db", policy, clock) as bandit:
        assert bandit.settings.policy["kind"] == "object"
        assert fed(bandit, clock).refit().version == 1
    assert not setup.is_training_process


def test_without_a_second_process_models_are_trained_here(
    training, setup, clock, tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr(sys, "executable", "true")
    with with_training(training, tmp_path / "page.db", setup.policy(), clock) as bandit:
        assert [fed(bandit, clock).refit().version for _ in range(2)] == [1, 2]
    assert not setup.is_training_process
    assert len(caplog.records) == 1


def test_a_training_that_crashes_is_tried_again_and_decisions_go_on(setup, clock, tmp_path, caplog):
    options = {"background": True, "refit_rows": 1}
    with opened(tmp_path / "page.db", setup.policy("dies once"), clock, **options) as bandit:
        fed(bandit, clock)
        bandit.decide()
        assert wait_until(bandit.versions)[0].version == 1
    assert "status 3" in caplog.text
    assert setup.is_training_process


def with_training(training, file, policy, clock, background=False, **options):
    """A bandit in a file, whose models are trained by this process."""
    opened(file, policy, clock, **options).close()
    store = SQLiteStore(file, clock=clock)
    return LiveBandit.of_store(store, "page", background=background, clock=clock, training=training)


def test_a_bandit_waits_for_another_training_without_being_blamed(training, setup, clock, tmp_path):
    other = Thread(target=training.train, args=(setup.job("waits"), setup.lazy(None)))
    other.start()
    wait_until(setup.has_begun)
    file, policy = tmp_path / "page.db", setup.policy()
    options = {"background": True, "refit_rows": 1}
    with with_training(training, file, policy, clock, **options) as bandit:
        fed(bandit, clock)
        bandit.decide()
        wait_until(lambda: bandit.ledger().counts["matured"] == 30)
        assert bandit.version == 0
        setup.go_on()
        wait_until(lambda: bandit.version > 0)
        assert not any(bandit.failures.values())
    other.join()
    assert setup.is_training_process
