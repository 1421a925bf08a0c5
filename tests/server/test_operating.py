import pytest
from waiting import wait_until

import submax
from submax.bandit.conditions import Condition
from submax.bandit.durable import DurableBandit
from submax.client import Client

from .conftest import created, decided, done

ARMS = {"name": "arms", "actions": ["A", "B", "C"], "policy": "thompson-1-1"}
HOLDOUT = {"holdout": 0.5, "baseline": "A"}


def changed(http, status=200, **changes):
    return done(http.request("PATCH", "/bandits/arms", json=changes), status)


def test_units_keep_their_actions_and_groups_over_http(http):
    created(http, {**ARMS, "guard_rails": HOLDOUT, "sticky": 3600})
    units = [f"visitor-{number}" for number in range(30)]
    first = [decided(http, unit=unit) for unit in units]
    requests = [{"unit": unit} for unit in units]
    many = done(http.post("/bandits/arms/decide-many", json={"requests": requests}))["decisions"]
    for before, now in zip(first, many, strict=True):
        assert now["unit"] == before["unit"]
        assert (now["action"], now["holdout"]) == (before["action"], before["holdout"])
    assert {one["holdout"] for one in first} == {True, False}
    failed = http.post("/bandits/arms/decide", json={"unit": "two words"})
    assert (failed.status_code, failed.json()["code"]) == (400, "invalid-input")


def test_settings_are_changed_and_audited(http):
    created(http, ARMS)
    shown = changed(http, refit_rows=7, sticky="none", guard_rails={"minimum": 0.1})
    assert shown == done(http.get("/bandits/arms"))
    assert (shown["refit_rows"], shown["sticky"]) == (7, "none")
    assert shown["guard_rails"]["minimum"] == 0.1
    shown = changed(http, refit_rows=None, guard_rails=HOLDOUT)
    assert shown["refit_rows"] == 100
    # Guard rails that are not named stay.
    assert (shown["guard_rails"]["minimum"], shown["guard_rails"]["holdout"]) == (0.1, 0.5)
    changes = done(http.get("/audit"))["changes"]
    assert [(one["operation"], one["subject"]) for one in changes[:2]] == [("set", "arms")] * 2
    assert "refit_rows" in changes[1]["detail"]


def test_another_policy_is_checked_before_it_decides(http):
    created(http, ARMS)
    assert changed(http, policy="rcp-submax")["policy"] == "rcp-submax"
    for wrong in ("my_policy.py:Mine", {"kind": "thompson", "alpha": 1e9}):
        assert changed(http, 400, policy=wrong)["code"] == "invalid-input"
    assert done(http.get("/bandits/arms"))["policy"] == "rcp-submax"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"guard_rails": {"minimum": 0.6}}, "guard-rail"),
        ({"guard_rails": {"control": "A"}}, "guard-rail"),
        ({"reward_wait": -7}, "invalid-input"),
        ({"refit_rows": -1}, "invalid-input"),
        ({"actions": ["A"]}, "invalid-input"),
        ({"colour": "red"}, "invalid-input"),
        ({}, "invalid-input"),
    ],
)
def test_a_contradiction_is_refused_and_changes_nothing(http, changes, code):
    before = created(http, ARMS)
    refused = changed(http, 400, **changes)
    assert refused["code"] == code
    assert done(http.get("/bandits/arms")) == before
    assert [one["operation"] for one in done(http.get("/audit"))["changes"]] == ["declare"]
    decided(http)


def test_a_bandit_is_paused_archived_and_resumed(http):
    created(http, {**ARMS, "guard_rails": HOLDOUT})
    shown = done(http.post("/bandits/arms/pause"))
    assert shown["status"] == "paused"
    assert "paused" in shown["notices"][-1]
    decision = decided(http, id="visit-1")
    assert (decision["action"], decision["paused"]) == ("A", True)
    assert done(http.post("/bandits/arms/archive"))["status"] == "archived"
    refused = done(http.post("/bandits/arms/decide", json={}), 409)
    assert refused["code"] == "archived"
    done(http.post("/bandits/arms/reward", json={"id": "visit-1", "value": 1}), 409)
    assert done(http.post("/bandits/arms/resume"))["status"] == "active"
    assert not decided(http)["paused"]
    changes = done(http.get("/audit"))["changes"]
    assert [one["operation"] for one in changes] == ["resume", "archive", "pause", "declare"]


def test_arms_and_lift_are_shown(http):
    created(http, {**ARMS, "guard_rails": HOLDOUT, "reward_wait": 0.05})
    for _ in range(40):
        decision = decided(http)
        value = float(decision["action"] == "B")
        done(http.post("/bandits/arms/reward", json={"id": decision["id"], "value": value}))

    def compared():
        (found,) = done(http.get("/bandits/arms/lift"))["lifts"]
        return found["decisions"] + found["decisions_of_group"]

    wait_until(lambda: compared() == 40)
    (lift,) = done(http.get("/bandits/arms/lift"))["lifts"]
    assert (lift["against"], lift["action"], lift["exact"]) == ("holdout", "A", True)
    assert -1 <= lift["low"] <= lift["estimate"] <= lift["high"] <= 1
    assert lift["sample_ratio"]["expected"] == 0.5
    arms = {one["choice"]: one for one in done(http.get("/bandits/arms"))["arms"]}
    assert sum(one["decisions"] for one in arms.values()) == 40
    assert arms["A"]["reward_rate"] in (0.0, None)
    assert sum(one["probability"] for one in arms.values()) == pytest.approx(1.0)


def test_pausing_the_baseline_is_shown_and_without_groups_there_is_no_lift(http):
    before = created(http, ARMS)["notices"]
    assert done(http.get("/bandits/arms/lift"), 400)["code"] == "invalid-input"
    changed(http, guard_rails=HOLDOUT)
    shown = done(http.post("/bandits/arms/choices", json={"verb": "pause", "choice": "A"}))
    assert any("'A'" in sentence for sentence in shown["notices"] if sentence not in before)


def test_conditions_are_shown_and_measured(http, monkeypatch):
    found = Condition("reward-rate", "the mean reward has fallen", {"before": 0.5, "now": 0.1})
    monkeypatch.setattr(DurableBandit, "conditions", lambda self: [found])
    (shown,) = created(http, ARMS)["conditions"]
    assert (shown["kind"], shown["values"]["now"]) == ("reward-rate", 0.1)
    line = 'submax_conditions{bandit="arms",kind="reward-rate"} 1.0'
    assert line in http.get("/metrics").text


def test_a_unit_is_erased_and_this_is_recorded(http):
    created(http, ARMS)
    for _ in range(3):
        decided(http, unit="visitor")
    decided(http, unit="another")
    assert done(http.post("/bandits/arms/erase", json={"unit": "visitor"})) == {"decisions": 3}
    left = done(http.get("/bandits/arms/decisions"))["decisions"]
    assert [one["unit"] for one in left] == ["another"]
    assert done(http.get("/audit"))["changes"][0]["operation"] == "erase a unit"


def test_a_decision_is_found_with_its_rewards(http):
    created(http, ARMS)
    made = decided(http, unit="visitor")
    done(http.post("/bandits/arms/reward", json={"id": made["id"], "value": 1}))
    found = done(http.get(f"/bandits/arms/decisions/{made['id']}"))
    assert (found["unit"], found["action"]) == ("visitor", made["action"])
    assert [one["value"] for one in found["rewards"]] == [1.0]
    done(http.get("/bandits/arms/decisions/none"), 404)


def test_the_client_operates_a_bandit(serve, tmp_path):
    file = tmp_path / "arms.db"
    submax.open(file, actions=["A", "B"], background=False).close()
    server = serve(file)
    with Client(server.address, "arms") as client:
        assert client.decide(unit="visitor-1").unit == "visitor-1"
        assert client.set(guard_rails=HOLDOUT)["guard_rails"]["holdout"] == 0.5
        assert client.lift()[0].against == "holdout"
        assert client.pause()["status"] == "paused"
        assert client.archive()["status"] == "archived"
        assert client.resume()["status"] == "active"
