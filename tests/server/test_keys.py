import pytest
from refusals import raises_code
from waiting import wait_until

from submax.bandit.declaring import declare
from submax.bandit.store import open_store
from submax.server import service as service_module
from submax.server.api import OPERATIONS
from submax.server.keys import SCOPES, Keys

from .conftest import contents

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


def wrong_headers(text):
    _, number, secret = text.split(".")
    return {
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


def test_a_wrong_key_is_refused_and_no_key_is_told(serving, store):
    _, text = Keys(store).add(["admin"])
    http = serving(store)
    for kind, header in wrong_headers(text).items():
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
    made = http.post("/keys", json={"scopes": ["read"], "rate": 9}, headers=admin).json()
    shown = http.get("/keys", headers=admin)
    assert made["key"].split(".")[2] not in shown.text
    (found,) = [one for one in shown.json()["keys"] if one["id"] == made["id"]]
    assert (found["scopes"], found["rate"], found["origins"]) == (["read"], 9.0, None)
    headers = {"authorization": f"Bearer {made['key']}"}
    assert http.get("/bandits", headers=headers).status_code == 200


def test_each_key_has_its_own_rate(serving, store, key):
    slow, free = key("decide", rate=0.1), key("decide")
    http = serving(store)

    def statuses(headers):
        return [http.post("/bandits/one/decide", json={}, headers=headers) for _ in range(20)]

    slowed = [answer.status_code for answer in statuses(slow)]
    assert slowed.count(200) >= 1
    assert slowed.count(429) >= 10
    assert {answer.status_code for answer in statuses(free)} == {200}


def test_only_the_hash_of_a_key_is_in_the_file(tmp_path):
    store = open_store(tmp_path / "a.db")
    number, text = Keys(store).add(["admin"])
    store.close()
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert number.encode() in held
    assert text.split(".")[2].encode() not in held
    assert text.encode() not in held


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


def test_without_keys_pages_of_other_sites_are_refused(serving, store):
    http = serving(store)
    for wrong in ({"host": "evil.example"}, {"origin": "https://evil.example"}, {"origin": "null"}):
        assert http.get("/bandits", headers=wrong).status_code == 403
    assert http.get("/bandits", headers={"origin": "http://127.0.0.1"}).status_code == 200
