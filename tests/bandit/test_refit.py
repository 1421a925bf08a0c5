"""Versions are fitted in another process, published once, and the same after a restart."""

import os
import signal
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest
from refusals import raises_code

from submax.bandit import refit
from submax.bandit.declaring import declare, find_bandit
from submax.bandit.jobs import JobRunner
from submax.bandit.refit import BanditLearner, FitRequest, Refitter, versions_of
from submax.bandit.store import open_store, result_of
from submax.bandit.tables import DecisionRow, RewardRow
from submax.policies import make_policy
from submax.policies.random import RandomPolicy
from submax.schema.actions import Change

DECLARED = {"actions": ["A", "B"], "context": {"x": float, "y": ["u", "v"]}, "reward_wait": 0}
POLICIES = ["rcp-adaptive", "lin-ucb", "thompson", "rcp-neural"]


@pytest.fixture(scope="module")
def jobs():
    runner = JobRunner()
    yield runner
    runner.close()


@pytest.fixture
def store(tmp_path, clock):
    with open_store(tmp_path / "store.db", clock=clock) as opened:
        yield opened


def lived(store, bandit, first, end, wait=float("inf")):
    """Decisions and rewards with these numbers."""
    rng = np.random.default_rng(first)
    names = [f"d{number}" for number in range(first, end)]
    context = [f'{{"x":{value},"y":"{"uv"[value > 0]}"}}' for value in rng.normal(size=len(names))]
    rows = [
        DecisionRow(name, 0, "AB"[place % 2], 0.5, context=context[place])
        for place, name in enumerate(names)
    ]
    result_of(store.write_decisions(bandit, rows))
    rewards = rng.integers(0, 2, len(names)).tolist()
    given = [RewardRow(*one) for one in zip(names, ["k"] * len(names), rewards, strict=True)]
    result_of(store.write_rewards(bandit, given, wait))


def fitted(store, jobs, **declaration):
    declared = declare(store, "b", {**DECLARED, **declaration})
    return declared, Refitter(store, declared, jobs)


def models(store):
    return store.select("select number, hash, base, rows, cursor, ahead from version order by number")


@pytest.mark.parametrize("policy", POLICIES)
def test_a_restart_at_any_time_gives_the_same_versions(tmp_path, clock, jobs, policy):
    found = {}
    for way in ("job", "restarts", "from rows"):
        with open_store(tmp_path / f"{way}.db", clock=clock) as store:
            declared, refitter = fitted(store, jobs, policy=policy)
            learner = BanditLearner(make_policy(policy))
            for end in (5, 12, 30, 70, 80):
                lived(store, declared.n, end // 2 if end == 5 else len(range(end)) - 2, end + 40)
                clock.now += 1
                if way == "job":
                    assert refitter.refit(find_bandit(store, "b"))
                    continue
                if way == "from rows":
                    store.execute([("delete from learner", {})])
                learner = BanditLearner(make_policy(policy))
                until = store.tick(declared.n)
                request = FitRequest(declared.n, declared.settings, declared.menu, until)
                assert refitter._publish(learner.fit(store, request))
            found[way] = [row[:4] for row in models(store)]
            bases = [base for _, _, base, _ in found[way]]
        clock.now += 1
    assert found["job"] == found["restarts"] == found["from rows"]
    assert any(bases) == (policy not in ("rcp-neural",))
