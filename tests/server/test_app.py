import json
from threading import Event

import jsonschema_rs
from prometheus_client.parser import text_string_to_metric_families
from waiting import wait_until

from submax.bandit.declaring import declare
from submax.server.service import Service

from .conftest import created, decided, done

PAGE = {
    "name": "page",
    "actions": {"title": ["A", "B", "C"], "layout": ["wide", "narrow"]},
    "context": {"country": ["fr", "de"], "age": {"default": 40}},
    "policy": "linucb",
}
ARMS = {"name": "arms", "actions": ["A", "B", "C"]}


def test_a_bandit_is_created_and_shown_with_what_was_declared(http):
    shown = created(http, {**PAGE, "reward_wait": 60, "default_reward": None, "seed": 5})
    assert shown == done(http.get("/bandits/page"))
    assert shown["actions"]["layout"][0] == {"choice": "wide", "status": "active"}
    assert shown["context"]["age"] == {"type": "number", "default": 40.0}
    assert (shown["reward_wait"], shown["default_reward"], shown["version"]) == (60.0, None, 0)
    assert not shown["context_ignored"]
    assert done(http.get("/bandits")) == {"bandits": ["page"]}


def test_what_is_decided_and_rewarded_over_http_is_what_the_store_holds(http, store):
    created(http, PAGE)
    decision = decided(http, "page", id="d1", context={"country": "fr"})
    sql = "select action, propensity, version, context from decision"
    ((action, propensity, version, context),) = store.select(sql)
    assert decision["action"] == json.loads(action)
    assert (decision["propensity"], decision["version"]) == (propensity, version)
    assert json.loads(context) == ["fr", 40.0]
    assert not decision["repeated"]
    receipt = done(http.post("/bandits/page/reward", json={"id": "d1", "value": 1, "key": "buy"}))
    assert receipt == {"id": "d1", "status": "accepted", "repeated": False}
    assert store.select("select key, value from reward") == [("buy", 1.0)]


def test_the_same_requests_again_and_a_conflict_change_nothing(http, events):
    created(http, ARMS)
    first = decided(http, id="d1")
    reward = {"id": "d1", "value": 1.0}
    done(http.post("/bandits/arms/reward", json=reward))
    before = events()
    assert decided(http, id="d1") == {**first, "repeated": True}
    assert done(http.post("/bandits/arms/reward", json=reward))["repeated"]
    conflict = http.post("/bandits/arms/reward", json={"id": "d1", "value": 0.0})
    assert done(conflict, 409)["code"] == "conflict"
    done(http.post("/bandits", json={**ARMS, "policy": "random"}), 409)
    assert events() == before


def test_a_bandit_of_another_process_is_found(http, store):
    declare(store, "other", {"actions": ["A"]})
    assert done(http.get("/bandits"))["bandits"] == ["other"]
    assert decided(http, "other")["action"] == "A"


class Slow(Service):
    """Opens its bandits when it is told to."""

    def __init__(self, store):
        super().__init__(store)
        self.go = Event()

    def start(self):
        assert self.go.wait(60)
        super().start()


def test_the_server_is_healthy_at_once_and_ready_when_all_bandits_are_open(store, serving):
    service = Slow(store)
    http = serving(service)
    assert done(http.get("/healthz")) == {"status": "ok"}
    answer = http.get("/readyz")
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    done(http.get("/bandits"), 503)
    done(http.post("/bandits/arms/decide", json={}), 503)
    assert http.get("/metrics").status_code == 200
    service.go.set()
    wait_until(lambda: http.get("/readyz").status_code == 200)
    assert done(http.get("/bandits")) == {"bandits": []}


def samples(http):
    families = list(text_string_to_metric_families(http.get("/metrics").text))
    return {
        (one.name, *one.labels.values()): one.value
        for family in families
        for one in family.samples
        if not one.name.endswith("_created")
    }


def test_metrics_count_requests_by_operation_and_status(http):
    created(http, ARMS)
    for _ in range(3):
        decided(http)
    http.post("/bandits/none/decide", json={})
    http.get("/nothing")
    http.delete("/bandits")
    found = samples(http)
    assert found["submax_requests_total", "decide", "200"] == 3
    assert found["submax_requests_total", "decide", "404"] == 1
    assert found["submax_request_seconds_count", "decide"] == 4
    assert found["submax_requests_total", "none", "404"] == 1
    assert found["submax_requests_total", "none", "405"] == 1
    assert found["submax_version", "arms"] == 0
    wait_until(lambda: samples(http).get(("submax_events_total", "arms", "decisions")) == 3)


def test_the_description_has_valid_schemas_and_references_that_resolve(http):
    described = done(http.get("/openapi.json"))
    assert described["openapi"].startswith("3.1")
    schemas = described["components"]["schemas"]
    for name in schemas:
        whole = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
        jsonschema_rs.meta.validate(schemas[name])
        jsonschema_rs.validator_for(whole)


def test_the_description_is_made_for_people_and_for_generators_of_clients(http):
    described = done(http.get("/openapi.json"))
    groups = {one["name"] for one in described["tags"]}
    operations = [one for path in described["paths"].values() for one in path.values()]
    assert all(set(one["tags"]) <= groups and one["summary"] for one in operations)
    # Pages and signing in are for browsers of this server.
    assert not {"/", "/login", "/logout"} & set(described["paths"])
    for name, schema in described["components"]["schemas"].items():
        for word, field in schema.get("properties", {}).items():
            # A default of null is taken by openapi-typescript for a field that is always sent.
            assert field.get("default", 0) is not None, (name, word)
    fields = described["components"]["schemas"]["Decide"]["properties"]
    assert all(field.get("description") for field in fields.values())
