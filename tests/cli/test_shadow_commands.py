import json

import pytest

import submax
from submax.testing import ManualClock


@pytest.fixture
def store(tmp_path):
    path, clock = tmp_path / "page.db", ManualClock()
    opened = submax.open(
        path, actions=["A", "B"], shadow="rcp-submax", reward_wait=60, background=False, clock=clock
    )
    with opened as bandit:
        for _ in range(2):
            for _ in range(20):
                bandit.reward(bandit.decide().id, 1.0)
            clock.now += 61
            bandit.refit()
    return path


def test_a_shadow_is_shown_promoted_and_taken_back(store, run_here):
    run = run_here
    shown = run("shadow", "show", store).stdout
    assert "Shadow rcp-submax: running" in shown
    assert "95 % interval" in shown
    assert "decides by rcp-submax now" in run("shadow", "promote", store, "page").stdout
    assert "Shadow rcp-adaptive" in run("shadow", "show", store).stdout
    assert "decides by rcp-adaptive again" in run("shadow", "roll-back", store, "page").stdout
    assert "no shadow" in run("shadow", "remove", store, "page").stdout
    table = json.dumps({"kind": "thompson", "beta": 9.0})
    assert "Shadow thompson" in run("shadow", "set", store, "page", table).stdout
    audit = run("audit", store).stdout
    for operation in ("promote-shadow", "roll-back-shadow", "set-shadow"):
        assert operation in audit


@pytest.mark.parametrize("policy", ["rcp-submx", "{no json", '{"kind": "nothing"}'])
def test_a_wrong_policy_is_refused(store, run_here, policy):
    found = run_here("shadow", "set", store, "page", policy)
    assert (found.returncode, found.stderr.count("\n")) == (2, 1)
    assert "Shadow rcp-submax" in run_here("shadow", "show", store).stdout
