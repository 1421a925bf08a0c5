import pytest

from submax.bandit.conditions import Condition
from submax.bandit.durable import DurableBandit

from .conftest import created, decided, done

ARMS = {"name": "arms", "actions": ["A", "B", "C"], "policy": "thompson-1-1"}
HOLDOUT = {"holdout": 0.5, "baseline": "A"}


def changed(http, status=200, **changes):
    return done(http.request("PATCH", "/bandits/arms", json=changes), status)


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
    assert [(one["action"], one["subject"]) for one in changes[:2]] == [("set", "arms")] * 2
    assert "refit_rows" in changes[1]["detail"]


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
    assert [one["action"] for one in done(http.get("/audit"))["changes"]] == ["declare"]
    decided(http)


@pytest.mark.parametrize("headers", [{}, {"content-type": "application/json"}])
def test_an_empty_body_is_enough_where_no_field_is_needed(http, headers):
    created(http, ARMS)
    assert done(http.post("/bandits/arms/publish", headers=headers)) == {"version": 0}
    refused = http.post("/bandits/arms/reward", headers=headers)
    assert refused.status_code == (400 if headers else 415)


def test_conditions_are_shown_and_measured(http, monkeypatch):
    found = Condition("reward-rate", "the mean reward has fallen", {"before": 0.5, "now": 0.1})
    monkeypatch.setattr(DurableBandit, "conditions", lambda self: [found])
    (shown,) = created(http, ARMS)["conditions"]
    assert (shown["kind"], shown["values"]["now"]) == ("reward-rate", 0.1)
    line = 'submax_conditions{bandit="arms",kind="reward-rate"} 1.0'
    assert line in http.get("/metrics").text
