"""What is done over HTTP: bandits, decisions, settings, exports, metrics and the description."""

import io
import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import jsonschema_rs
import pyarrow.parquet as pq
import pytest
from waiting import wait_until

from submax.bandit.conditions import Condition
from submax.bandit.declaring import declare
from submax.bandit.durable import DurableBandit
from submax.bandit.jobs import JobError
from submax.server.service import Service

from .conftest import contents, created, decided, done

ARMS = {"name": "arms", "actions": ["A", "B", "C"], "policy": "thompson-1-1"}
PAGE = {
    "name": "page",
    "actions": {"title": ["A", "B", "C"], "layout": ["wide", "narrow"]},
    "context": {"country": ["fr", "de"], "age": {"default": 40}},
    "policy": "linucb",
}


def test_a_bandit_is_created_and_shown_with_what_was_declared(http):
    shown = created(http, {**PAGE, "reward_wait": 60, "default_reward": None, "seed": 5})
    assert shown == done(http.get("/bandits/page"))
    again = created(http, {**PAGE, "name": "again", "context": shown["context"]})
    assert again["context"] == shown["context"]
    done(http.delete("/bandits/again"))
    assert shown["actions"]["layout"][0] == {"choice": "wide", "status": "active"}
    assert shown["context"]["age"] == {"type": "number", "default": 40.0}
    assert (shown["reward_wait"], shown["default_reward"], shown["version"]) == (60.0, None, 0)
    assert not shown["context_ignored"]
    assert done(http.get("/bandits")) == {"bandits": ["page"]}


def test_what_is_decided_and_rewarded_is_stored_and_the_same_again_changes_nothing(http, store):
    created(http, PAGE)
    request, reward = {"id": "d1", "context": {"country": "fr"}}, {"id": "d1", "value": 1.0}
    decision = decided(http, "page", **request)
    sql = "select action, propensity, version, context from decision"
    ((action, propensity, version, context),) = store.select(sql)
    assert decision["action"] == json.loads(action)
    assert (decision["propensity"], decision["version"]) == (propensity, version)
    assert json.loads(context) == ["fr", 40.0]
    assert not decision["repeated"]
    receipt = done(http.post("/bandits/page/reward", json=reward))
    assert receipt == {"id": "d1", "status": "accepted", "repeated": False}
    assert store.select("select value from reward") == [(1.0,)]
    before = contents(store)
    assert decided(http, "page", **request) == {**decision, "repeated": True}
    assert done(http.post("/bandits/page/reward", json=reward))["repeated"]
    conflict = http.post("/bandits/page/reward", json={**reward, "value": 0.0})
    assert done(conflict, 409)["code"] == "conflict"
    done(http.post("/bandits", json={**PAGE, "policy": "random"}), 409)
    assert contents(store) == before


def test_a_bandit_of_another_process_is_found(http, store):
    declare(store, "other", {"actions": ["A"]})
    assert done(http.get("/bandits"))["bandits"] == ["other"]
    assert decided(http, "other")["action"] == "A"


def test_the_server_is_healthy_at_once_and_ready_when_all_bandits_are_open(store, serving):
    service, go = Service(store), Event()
    start = service.start
    service.start = lambda: go.wait(60) and start()
    http = serving(service, is_awaited=False)
    assert done(http.get("/healthz")) == {"status": "ok"}
    answer = http.get("/readyz")
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    done(http.get("/bandits"), 503)
    done(http.post("/bandits/arms/decide", json={}), 503)
    assert http.get("/metrics").status_code == 200
    go.set()
    wait_until(lambda: http.get("/readyz").status_code == 200)
    assert done(http.get("/bandits")) == {"bandits": []}


def test_metrics_count_requests_by_operation_and_status(http):
    created(http, ARMS)
    for _ in range(3):
        decided(http)
    http.post("/bandits/none/decide", json={})
    http.get("/nothing")
    http.delete("/bandits")
    measured = http.get("/metrics").text.splitlines()
    assert {
        'submax_requests_total{operation="decide",status="200"} 3.0',
        'submax_requests_total{operation="decide",status="404"} 1.0',
        'submax_request_seconds_count{operation="decide"} 4.0',
        'submax_requests_total{operation="none",status="404"} 1.0',
        'submax_requests_total{operation="none",status="405"} 1.0',
        'submax_version{bandit="arms"} 0.0',
    } <= set(measured)
    events = 'submax_events_total{bandit="arms",kind="decisions"} 3.0'
    wait_until(lambda: events in http.get("/metrics").text)


def test_the_description_is_valid_and_made_for_people_and_for_generators_of_clients(http):
    described = done(http.get("/openapi.json"))
    assert described["openapi"].startswith("3.1")
    groups = {one["name"] for one in described["tags"]}
    operations = [one for path in described["paths"].values() for one in path.values()]
    assert all(set(one["tags"]) <= groups and one["summary"] for one in operations)
    # Pages and signing in are for browsers of this server.
    assert not {"/", "/login", "/logout"} & set(described["paths"])
    schemas = described["components"]["schemas"]
    for name, schema in schemas.items():
        whole = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
        jsonschema_rs.meta.validate(schema)
        jsonschema_rs.validator_for(whole)
        for word, field in schema.get("properties", {}).items():
            # A default of null is taken by openapi-typescript for a field that is always sent.
            assert field.get("default", 0) is not None, (name, word)
    fields = schemas["Decide"]["properties"]
    assert all(field.get("description") for field in fields.values())


def changed(http, **changes):
    return done(http.request("PATCH", "/bandits/arms", json=changes))


def test_settings_are_changed_and_audited(http):
    created(http, ARMS)
    shown = changed(http, refit_rows=7, sticky="none", guard_rails={"minimum": 0.1})
    assert shown == done(http.get("/bandits/arms"))
    assert (shown["refit_rows"], shown["sticky"]) == (7, "none")
    assert shown["guard_rails"]["minimum"] == 0.1
    shown = changed(http, refit_rows=None, guard_rails={"holdout": 0.5, "baseline": "A"})
    assert shown["refit_rows"] == 100
    # Guard rails that are not named stay.
    assert (shown["guard_rails"]["minimum"], shown["guard_rails"]["holdout"]) == (0.1, 0.5)
    changes = done(http.get("/audit"))["changes"]
    assert [(one["action"], one["subject"]) for one in changes[:2]] == [("set", "arms")] * 2
    assert "refit_rows" in changes[1]["detail"]


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


EXPORT = "/bandits/arms/export"


@pytest.mark.parametrize("wanted", [None, "bytes=0-10", "bytes=5-2", "bytes=x", "lines=1", "\xff"])
def test_an_export_is_sent_as_a_whole_and_leaves_no_file(http, tmp_path, monkeypatch, wanted):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    created(http, ARMS)
    made = [decided(http)["id"] for _ in range(20)]
    headers = {} if wanted is None else {"range": wanted.encode("latin-1")}
    answer = http.get(EXPORT, headers=headers)
    assert answer.status_code == 200
    rows = pq.read_table(io.BytesIO(answer.content)).to_pylist()
    assert [row["id"] for row in rows] == made
    assert list((tmp_path / "temporary").iterdir()) == []


class Waiting:
    """Runs jobs as a ``JobRunner`` does, but waits before."""

    def __init__(self, error):
        self.begun, self.go, self.error = Event(), Event(), error
        self.modes = []

    @property
    def busy(self):
        return self.begun.is_set()

    def run(self, function, address, bandit, path):
        self.begun.set()
        assert self.go.wait(60)
        if self.error is not None:
            raise self.error
        function(address, bandit, path)
        self.modes.append(Path(path).stat().st_mode & 0o077)

    def close(self):
        self.go.set()


@pytest.mark.parametrize("error", [None, JobError("killed"), OSError(28, "no space")])
def test_exports_are_written_one_at_a_time_and_decisions_go_on(serving, store, error):
    service = Service(store)
    jobs = service.exports = Waiting(error)
    http = serving(service)
    created(http, ARMS)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(http.get, EXPORT)
        assert jobs.begun.wait(60)
        refused = http.get(EXPORT)
        assert (refused.status_code, refused.json()["code"]) == (429, "too-many-requests")
        decided(http)
        jobs.go.set()
        assert running.result().status_code == (200 if error is None else 503)
    # Others cannot read what is written.
    assert set(jobs.modes) <= {0}
