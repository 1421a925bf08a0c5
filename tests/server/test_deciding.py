"""Decisions of requests that come at the same time, and of policies that take forever."""

import signal
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from waiting import wait_until

from submax.bandit.durable import open_bandit
from submax.core.errors import StoreError
from submax.server import deciding
from submax.server.service import Service

from .conftest import decided, done

CALLERS = 32


def fail():
    raise StoreError("the disk is full")


@pytest.fixture
def decide(http):
    """Decide for several ids at the same time; the answers are in the same order."""
    arms = {"name": "page", "actions": ["A", "B"], "context": {"age": "number"}}
    assert http.post("/bandits", json=arms).status_code == 201

    def decide(*identifiers):
        def one(identifier):
            context = {"age": "old" if identifier == "wrong" else 1.0}
            body = {"id": identifier, "context": context}
            return http.post("/bandits/page/decide", json=body)

        with ThreadPoolExecutor(CALLERS) as pool:
            return list(pool.map(one, identifiers))

    return decide


def decisions(store):
    """The ids of all decisions that are stored."""
    return [identifier for (identifier,) in store.select("select id from decision order by id")]


def test_each_has_its_own_answer_and_a_wrong_one_fails_alone(decide, store):
    asked = [f"d{number}" for number in range(100)]
    wrong, *found = decide("wrong", *asked)
    assert wrong.status_code == 400
    assert [one.json()["id"] for one in found] == asked
    assert decisions(store) == sorted(asked)


def test_the_same_id_is_one_decision(decide, store):
    found = [one.json() for one in decide(*["d1"] * CALLERS)]
    assert sorted(one["repeated"] for one in found) == [False] + [True] * (CALLERS - 1)
    assert len({one["action"] for one in found}) == 1
    assert decisions(store) == ["d1"]


@pytest.mark.parametrize("answer", [fail, Future])
def test_a_decision_that_was_written_and_not_acknowledged_is_sent_again_and_stored_once(
    decide, store, monkeypatch, answer
):
    """The store fails, or does not answer and is given up."""
    write = store.write_decisions

    def write_and_answer(bandit, rows):
        write(bandit, rows).result()
        return answer()

    monkeypatch.setattr(deciding, "WRITE_TIMEOUT_SECONDS", 0.2)
    monkeypatch.setattr(store, "write_decisions", write_and_answer)
    (failed,) = decide("d1")
    assert (failed.status_code, failed.json()["code"]) == (503, "store-unavailable")
    monkeypatch.undo()
    (again,) = decide("d1")
    assert again.json()["repeated"]
    assert decisions(store) == ["d1"]


STUCK = """
import time
from dataclasses import dataclass
from pathlib import Path
import numpy as np
from submax.core.policy import PolicyTraits
from submax.policies.epsilon_greedy import Random

def wait_for(name):
    while not Path(__file__).with_name(name).exists():
        time.sleep(0.01)

@dataclass(frozen=True)
class Stuck(Random):
    @property
    def traits(self):
        return PolicyTraits(uses_context=True)

    def probabilities(self, state, context):
        Path(__file__).with_name("begun").touch()
        if (context == 7.0).any():
            wait_for("go")
        return np.tile([0.9, 0.1, 0.0], (1, context.shape[1], 1))
"""
"""A policy that prefers the first action, and is stuck if a number of the context is 7."""
POLICY = [0.9, 0.1]
"""The probabilities of its actions."""
FREE, HELD = {"context": {"age": 1.0}}, {"context": {"age": 7.0}}


@pytest.fixture
def declare(tmp_path):
    """Declare a bandit with the policy beside the server."""
    (tmp_path / "policy.py").write_text(STUCK)

    def declare(store, **options):
        policy, arms = f"{tmp_path / 'policy.py'}:Stuck", ["A", "B", "C"]
        given = {"name": "page", "actions": arms, "context": {"age": float}, "policy": policy}
        bandit = open_bandit(store, **given, background=False, **options)
        bandit.close() if isinstance(store, Path) else bandit.stop()

    yield declare
    (tmp_path / "go").touch()


@pytest.fixture
def served(declare, serving, store, monkeypatch):
    """Serves the policy, for whose decisions nobody waits long."""
    monkeypatch.setattr(deciding, "DECIDE_SECONDS", 0.3)
    monkeypatch.setattr(deciding, "MANY_SECONDS", 2.0)

    def served(**options):
        declare(store, **options)
        return serving(Service(store, trust=True))

    return served


def decided_many(http, count):
    body = {"requests": [FREE] * count}
    return done(http.post("/bandits/page/decide-many", json=body))["decisions"]


def test_decisions_of_a_stuck_policy_are_uniform_and_counted_until_it_goes_on(
    served, store, tmp_path
):
    open_bandit(store, name="other", actions=["A", "B"], background=False).stop()
    http = served()
    assert decided(http, "page", **HELD)["propensity"] == pytest.approx(1 / 3)
    # The policy is still stuck, and nobody waits for it any more.
    found = decided_many(http, 50)
    assert [one["propensity"] for one in found] == pytest.approx([1 / 3] * 50)
    chosen = decided(http, "page", **HELD, id="d1", eligible=["B"])
    assert (chosen["id"], chosen["action"], chosen["propensity"]) == ("d1", "B", 1.0)
    assert decided(http, "page", **HELD, id="d1")["repeated"]
    done(http.post("/bandits/page/decide", json={"context": {}}), 400)
    # Other bandits are not stopped.
    decided(http, "other")
    assert done(http.get("/bandits/page"))["failures"]["decisions after the deadline"] == 53
    kind = 'kind="decisions_after_the_deadline"'
    assert f'submax_failures_total{{bandit="page",{kind}}} 53.0' in http.get("/metrics").text
    (tmp_path / "go").touch()
    wait_until(lambda: decided(http, "page", **FREE)["propensity"] in POLICY)


def test_uniform_decisions_keep_to_the_guard_rails(served):
    http = served(guard_rails={"control": "A", "control_share": 0.5, "minimum": 0.01})
    decided(http, "page", **HELD)
    found = {one["action"]: one["propensity"] for one in decided_many(http, 100)}
    assert found == pytest.approx({"A": 0.5, "B": 0.25, "C": 0.25})


def test_sigterm_ends_the_server_while_a_request_waits_for_such_a_decision(
    declare, serve, tmp_path
):
    declare(tmp_path / "page.db")
    server = serve(tmp_path / "page.db", 0, "--trust")
    with pytest.raises(httpx.ReadTimeout):
        server.post("/bandits/page/decide", json=HELD, timeout=0.2)
    wait_until((tmp_path / "begun").exists)
    server.signal(signal.SIGTERM)
    assert server.ended() == 0
