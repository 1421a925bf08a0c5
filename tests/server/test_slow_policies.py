"""Policies that take for ever: they are refused over HTTP, and elsewhere they stop nobody."""

import signal
from pathlib import Path

import httpx
import pytest
from waiting import wait_until

from submax.bandit.durable import open_bandit
from submax.server import deciding
from submax.server.service import Service

ENDLESS = {
    "kind": "reward-conditioned",
    "estimator": {"kind": "counting"},
    "strategy": {"kind": "iterated", "depth": 10**9},
}
TRAINING = {
    "kind": "reward-conditioned",
    "estimator": {"kind": "softmax", "training": {"steps": 10**9}},
    "strategy": {"kind": "submax"},
}
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
def decide(declare, serving, store, monkeypatch):
    """Decide over HTTP with the policy, for whose decisions nobody waits long."""
    monkeypatch.setattr(deciding, "DECIDE_SECONDS", 0.3)
    monkeypatch.setattr(deciding, "MANY_SECONDS", 2.0)

    def opened(**options):
        declare(store, **options)
        service = Service(store, trust=True)
        http = serving(service)
        wait_until(lambda: service.ready)

        def decide(*requests, **one):
            if not requests:
                return http.post("/bandits/page/decide", json={**HELD, **one}).json()
            body = {"requests": list(requests)}
            return http.post("/bandits/page/decide-many", json=body).json()["decisions"]

        decide.http = http
        return decide

    return opened


@pytest.mark.parametrize("policy", [ENDLESS, TRAINING], ids=["deciding", "training"])
def test_a_policy_that_takes_for_ever_is_refused_over_http(http, policy):
    answer = http.post("/bandits", json={"name": "slow", "actions": ["A", "B"], "policy": policy})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid-input")
    assert http.get("/bandits").json() == {"bandits": []}


def test_decisions_of_a_stuck_policy_are_uniform_and_counted_until_it_goes_on(
    decide, store, tmp_path
):
    open_bandit(store, name="other", actions=["A", "B"], background=False).stop()
    decide = decide()
    assert decide()["propensity"] == pytest.approx(1 / 3)
    # The policy is still stuck, and nobody waits for it any more.
    found = decide(*[FREE] * 50)
    assert [one["propensity"] for one in found] == pytest.approx([1 / 3] * 50)
    chosen = decide(id="d1", eligible=["B"])
    assert (chosen["id"], chosen["action"], chosen["propensity"]) == ("d1", "B", 1.0)
    assert decide(id="d1")["repeated"]
    assert decide.http.post("/bandits/page/decide", json={"context": {}}).status_code == 400
    # Other bandits are not stopped.
    assert decide.http.post("/bandits/other/decide", json={}).status_code == 200
    shown = decide.http.get("/bandits/page").json()
    assert shown["failures"]["decisions after the deadline"] == 53
    kind = 'kind="decisions_after_the_deadline"'
    metrics = decide.http.get("/metrics").text
    assert f'submax_failures_total{{bandit="page",{kind}}} 53.0' in metrics
    (tmp_path / "go").touch()
    wait_until(lambda: decide(**FREE)["propensity"] in POLICY)


def test_uniform_decisions_keep_to_the_guard_rails(decide):
    decide = decide(guard_rails={"control": "A", "control_share": 0.5, "minimum": 0.01})
    decide()
    found = {one["action"]: one["propensity"] for one in decide(*[FREE] * 100)}
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
