"""Policies that take for ever: they are refused over HTTP, and elsewhere they stop nobody."""

import signal
import time

import httpx
import pytest

from submax.live.bandits.open import open_bandit

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


SLEEPING = """
import time
from dataclasses import dataclass
from pathlib import Path
from submax.policies.classic.random import Random

@dataclass(frozen=True)
class Sleeping(Random):
    def probabilities(self, state, context):
        Path(__file__).with_name("begun").touch()
        time.sleep(60)
        return super().probabilities(state, context)
"""
"""A policy whose decisions take for ever, but no processor, and which says that one has begun."""


@pytest.fixture
def serving_policy(serve, tmp_path):
    """Start a server of a bandit with a policy, declared beside the server."""

    def serving_policy(policy):
        file = tmp_path / "page.db"
        open_bandit(file, actions=["A", "B"], policy=policy, background=False).close()
        server = serve(file)
        server.wait_ready()
        return server

    return serving_policy


@pytest.mark.parametrize(
    ("policy", "word"),
    [(ENDLESS, "strategy.depth"), (TRAINING, "estimator.training.steps")],
    ids=["deciding", "training"],
)
def test_a_policy_that_takes_for_ever_is_refused_over_http(http, policy, word):
    body = {"name": "slow", "actions": ["A", "B"], "policy": policy}
    answer = http.post("/bandits", json=body)
    assert answer.status_code == 400
    sentence = answer.json()["error"]
    assert word in sentence
    assert "1000000000" in sentence
    assert "at most" in sentence
    assert http.get("/bandits").json() == {"bandits": []}


def test_a_decision_that_takes_for_ever_is_uniform_after_a_deadline_and_sigterm_ends_it(
    serving_policy,
):
    server = serving_policy(ENDLESS)
    begin = time.monotonic()
    answer = server.post("/bandits/page/decide", json={}, timeout=8)
    assert answer.json()["propensity"] == 0.5
    assert time.monotonic() - begin < 6
    # The policy still computes, so that further decisions do not wait for it.
    begin = time.monotonic()
    many = {"requests": [{}] * 10}
    found = server.post("/bandits/page/decide-many", json=many, timeout=8).json()
    assert [one["propensity"] for one in found["decisions"]] == [0.5] * 10
    assert time.monotonic() - begin < 1.5
    assert server.get("/healthz", timeout=2).status_code == 200
    shown = server.get("/bandits/page").json()
    assert shown["failures"]["decisions after the deadline"] == 11
    kind = 'kind="decisions_after_the_deadline"'
    metrics = server.get("/metrics").text
    assert f'submax_failures_total{{bandit="page",{kind}}} 11.0' in metrics
    ends_soon(server)


def test_sigterm_ends_the_server_while_a_request_waits_for_such_a_decision(
    serving_policy, tmp_path
):
    (tmp_path / "policy.py").write_text(SLEEPING)
    server = serving_policy(f"{tmp_path / 'policy.py'}:Sleeping")
    with pytest.raises(httpx.ReadTimeout):
        server.post("/bandits/page/decide-many", json={"requests": [{}, {}]}, timeout=0.5)
    assert (tmp_path / "begun").exists()
    ends_soon(server)


def ends_soon(server):
    server.signal(signal.SIGTERM)
    begin = time.monotonic()
    assert server.ended(12) == 0
    assert time.monotonic() - begin < 10
