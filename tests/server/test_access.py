"""Keys: what they allow, their rates and expiry, and what is recorded of them."""

import time
from datetime import UTC, datetime

import pytest
from refusals import raises_code
from waiting import wait_until

from submax.bandit.declaring import declare
from submax.bandit.store import open_store
from submax.bandit.tables import MAX_EARLY_OF_SOURCE
from submax.server import service as service_module
from submax.server.api import OPERATIONS
from submax.server.keys import SCOPES, Keys
from submax.server.limits import RateLimit
from submax.server.service import Service

from .conftest import contents, done

ALL = [one for one in OPERATIONS if not one.hidden]
ARMS = {"actions": ["A", "B"]}
BODIES = {
    "decide": {},
    "decide-many": {"requests": [{}]},
    "reward": {"id": "d1", "value": 1.0},
    "reward-many": {"rewards": [{"id": "d1", "value": 1.0}]},
    "activate": {"id": "d1"},
    "create": {"name": "new", "actions": ["A"]},
    "change": {"verb": "add", "choice": "C"},
    "publish": {"version": 0},
    "add-key": {"scopes": ["read"]},
    "set": {"refit_rows": 10},
    "erase": {"unit": "visitor"},
}
ALLOWED = {
    "decide": {"decide", "decide-many", "activate"},
    "reward": {"reward", "reward-many"},
    "read": {one.name for one in ALL if one.scope == "read"} | {"metrics"},
    "admin": {one.name for one in ALL} | {"metrics"},
}
OPEN = {"health", "ready", "openapi"}
LISTING = {"list"}
"""What a key of some bandits may do without naming one."""
ANSWERED = (200, 201, 400, 404, 409)
"""The key was accepted; the request may ask for what this bandit does not have."""


@pytest.fixture
def store(store):
    for name in ("one", "two"):
        declare(store, name, ARMS)
    return store


def routes(http):
    """Every operation, with its method and path."""
    for path, methods in http.get("/openapi.json").json()["paths"].items():
        for method, described in methods.items():
            place = path.replace("{name}", "one").replace("{id}", "none")
            yield described["operationId"], method.upper(), place


def ask(http, name, method, path, headers):
    body = {"json": BODIES[name]} if name in BODIES else {}
    return http.request(method, path, headers=headers, **body).status_code


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_allows_its_operations_and_no_other(serving, store, key, scope):
    headers = key(scope)
    http = serving(store)
    for name, method, path in routes(http):
        status = ask(http, name, method, path, headers)
        if name in ALLOWED[scope] | OPEN:
            assert status in ANSWERED, (name, status)
        else:
            assert status == 403, (name, status)


@pytest.mark.parametrize("scope", SCOPES)
def test_a_key_of_one_bandit_opens_no_other_and_nothing_common(serving, store, key, scope):
    headers = key(scope, bandits=["two"])
    http = serving(store)
    for name, method, path in routes(http):
        status = ask(http, name, method, path, headers)
        listing = name in LISTING and scope in ("read", "admin")
        assert status == (200 if name in OPEN or listing else 403), (name, status)
        if "/one" in path and name in ALLOWED[scope]:
            own = ask(http, name, method, path.replace("/one", "/two"), headers)
            assert own in ANSWERED, (name, own)


def test_without_a_key_nothing_is_opened_where_there_is_one(serving, store, key):
    key("admin")
    http = serving(store)
    before = contents(store)
    for name, method, path in routes(http):
        expected = 200 if name in OPEN else 401
        assert ask(http, name, method, path, {}) == expected, name
    assert contents(store) == before


def test_a_wrong_key_is_refused_and_no_key_is_told(serving, store):
    _, text = Keys(store).add(["admin"])
    _, number, secret = text.split(".")
    wrong = {
        "none": "",
        "kind alone": "Bearer ",
        "another kind": f"Basic {text}",
        "secret alone": f"Bearer {secret}",
        "another prefix": f"Bearer other.{number}.{secret}",
        "another id": f"Bearer submax.000000000000.{secret}",
        "empty secret": f"Bearer submax.{number}.",
        "longer": f"Bearer {text}x",
        "twice": f"Bearer {text}, Bearer {text}",
        "not ASCII": f"Bearer submax.{number}.é",
    }
    http = serving(store)
    for kind, header in wrong.items():
        answer = http.get("/bandits", headers={b"authorization": header.encode("latin-1")})
        assert answer.status_code == 401, kind
        assert answer.headers["www-authenticate"] == "Bearer"
        assert text not in answer.text


def test_a_revoked_key_opens_nothing_and_without_keys_nobody_is_let_in(serving, store, key):
    admin, other = key("admin"), key("read")
    http = serving(store)
    assert http.get("/bandits", headers=other).status_code == 200
    for revoked, again in ((other, 404), (admin, 401)):
        number = revoked["authorization"].split(".")[1]
        left = http.delete(f"/keys/{number}", headers=admin)
        assert number not in [one["id"] for one in left.json()["keys"]]
        assert http.get("/bandits", headers=revoked).status_code == 401
        assert http.delete(f"/keys/{number}", headers=admin).status_code == again
    # Neither after a restart.
    for headers in ({}, admin, other):
        assert serving(store).get("/bandits", headers=headers).status_code == 401
        assert http.get("/bandits", headers=headers).status_code == 401


def test_a_key_that_another_process_revokes_opens_nothing_soon(serving, store, key, monkeypatch):
    monkeypatch.setattr(service_module, "FOLLOW_SECONDS", 0.05)
    headers, _ = key("read"), key("admin")
    http = serving(store)
    assert http.get("/bandits", headers=headers).status_code == 200
    Keys(store).revoke(headers["authorization"].split(".")[1])
    wait_until(lambda: http.get("/bandits", headers=headers).status_code == 401)


def test_a_key_made_over_http_is_told_once(serving, store, key):
    admin = key("admin")
    http = serving(store)
    body = {"scopes": ["read"], "rate": 9, "expires": "2999-01-01T12:00:00Z"}
    made = http.post("/keys", json=body, headers=admin).json()
    shown = http.get("/keys", headers=admin)
    assert made["key"].split(".")[2] not in shown.text
    (found,) = [one for one in shown.json()["keys"] if one["id"] == made["id"]]
    assert (found["scopes"], found["rate"], found["origins"]) == (["read"], 9.0, None)
    assert found["expires"] == datetime(2999, 1, 1, 12, tzinfo=UTC).timestamp()
    headers = {"authorization": f"Bearer {made['key']}"}
    assert http.get("/bandits", headers=headers).status_code == 200


def test_each_key_has_its_own_rate(serving, store, key):
    slow, free = key("decide", rate=0.1), key("decide")
    http = serving(store)
    slowed, others = (
        [http.post("/bandits/one/decide", json={}, headers=one).status_code for _ in range(20)]
        for one in (slow, free)
    )
    assert set(slowed) == {200, 429}
    assert slowed.count(429) >= 10
    assert set(others) == {200}


@pytest.mark.parametrize(
    ("scopes", "limits", "parameter"),
    [
        (["read"], {"name": "a\nb"}, "name"),
        *((["reward"], {"origins": [one]}, "origins")
          for one in ("*", "null", "https://a/b", "ftp://a", "https://a.example,b")),
        (["reward", "read"], {"origins": ["https://a.example"]}, "scopes"),
        (["reward", "admin"], {"origins": ["https://a.example"]}, "scopes"),
    ],
)  # fmt: skip
def test_a_key_that_makes_no_sense_is_not_made(store, scopes, limits, parameter):
    with raises_code("invalid-input", parameter):
        Keys(store).add(scopes, **limits)
    assert len(list(Keys(store))) == 0


def test_a_key_is_refused_from_its_expiry_on(serving, store, key):
    now = [1000.0]
    soon, later = key("read", expires=1600.0), key("read", expires=1e6)
    service = Service(store)
    service.keys = Keys(store, lambda: now[0])
    http = serving(service)
    for now[0], expected in ((1599.0, [200, 200]), (1600.0, [401, 200])):
        answers = [http.get("/bandits", headers=one) for one in (soon, later)]
        assert [one.status_code for one in answers] == expected


def test_the_last_use_of_a_key_is_shown_and_kept(serving, store, key, tmp_path):
    admin, used = key("admin"), key("read", name="used")
    key("read", name="idle")
    http, begin = serving(store), int(time.time())
    http.get("/bandits", headers=used)
    shown = {one["name"]: one for one in http.get("/keys", headers=admin).json()["keys"]}
    assert begin <= shown["used"]["used"] <= time.time()
    assert shown["idle"]["used"] is None
    http.close()
    with open_store(tmp_path / "served.db", read_only=True) as closed:
        kept = {key.id for key in Keys(closed) if key.used}
    assert kept == {one["id"] for name, one in shown.items() if name != "idle"}


def test_a_large_cost_is_paid_before_the_next_request():
    now = [0.0]
    limit = RateLimit(clock=lambda: now[0])
    assert limit.allows("me", 10.0, cost=100.0)
    for now[0] in (1.0, 5.0, 9.0):
        assert not limit.allows("me", 10.0)
    now[0] = 10.0
    assert limit.allows("me", 10.0)
    assert limit.allows("you", 10.0)


def test_every_change_is_recorded_with_its_key(serving, store, key):
    admin, reader = key("admin", name="operator"), key("read")
    number = admin["authorization"].split(".")[1]
    http, begin, page = serving(store), int(time.time()), {"name": "page", "actions": ["A", "B"]}
    for path, body, status in (
        ("/bandits", page, 201),
        ("/bandits/page/choices", {"verb": "add", "choice": "C"}, 200),
        ("/bandits/page/publish", {"version": 0}, 200),
        # Neither of these changes anything.
        ("/bandits", page, 409),
        ("/bandits/page/decide", {}, 200),
    ):
        done(http.post(path, json=body, headers=admin), status)
    made = done(http.post("/keys", json={"scopes": ["read"]}, headers=admin), 201)
    http.delete(f"/keys/{made['id']}", headers=admin)
    answer = http.get("/audit", headers=admin)
    changes = [one for one in answer.json()["changes"] if one["key"] == number]
    assert [(one["action"], one["subject"]) for one in reversed(changes)] == [
        *((name, "page") for name in ("declare", "change", "publish")),
        ("add-key", made["id"]),
        ("revoke-key", made["id"]),
    ]
    for one in changes:
        assert (one["key"], one["name"]) == (number, "operator")
        assert begin <= one["at"] <= time.time()
    assert "C" in changes[3]["detail"]
    assert made["key"].split(".")[2] not in answer.text
    assert http.get("/audit", headers=reader).status_code == 403


DROPPED = 'submax_events_total{bandit="page",kind="dropped_from_quarantine"} 2000.0'


def test_rewards_of_unknown_decisions_are_bounded_for_each_key(serving, store, key):
    admin, good, bad = key("admin"), key("reward"), key("reward")
    http = serving(store)
    http.post("/bandits", json={"name": "page", "actions": ["A"]}, headers=admin)
    early = http.post("/bandits/page/reward", json={"id": "early", "value": 1}, headers=good)
    assert early.json()["status"] == "quarantined"
    for begin in range(0, MAX_EARLY_OF_SOURCE + 2000, 1000):
        rewards = [{"id": f"none-{begin + one}", "value": 1} for one in range(1000)]
        http.post("/bandits/page/reward-many", json={"rewards": rewards}, headers=bad)
    wait_until(lambda: DROPPED in http.get("/metrics", headers=admin).text)
    counts = http.get("/bandits/page", headers=admin).json()["counts"]
    assert counts["dropped from quarantine"] == 2000
    assert counts["rewards"] == MAX_EARLY_OF_SOURCE + 1
    http.post("/bandits/page/decide", json={"id": "early"}, headers=admin)
    again = http.post("/bandits/page/reward", json={"id": "early", "value": 1}, headers=good)
    assert again.json()["status"] == "accepted"


@pytest.mark.parametrize("has_keys", [False, True])
def test_a_reward_names_the_key_that_sent_it(serving, store, key, has_keys):
    headers = key("admin") if has_keys else {}
    number = headers["authorization"].split(".")[1] if has_keys else ""
    http = serving(store)
    http.post("/bandits", json={"name": "page", "actions": ["A"]}, headers=headers)
    http.post("/bandits/page/reward", json={"id": "one", "value": 1}, headers=headers)
    assert store.select("select value, source from early_reward") == [(1.0, number)]
