"""Keys expire and show their last use, wrong keys are limited, and changes are recorded."""

import time
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner
from refusals import raises_code

from submax.cli import main
from submax.core.errors import StoreError
from submax.live.operating.audit_log import STREAM
from submax.live.store.memory_store import MemoryStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.web.server.access import failed_attempts
from submax.web.server.access.failed_attempts import FailedAttempts
from submax.web.server.access.key import parsed_time
from submax.web.server.access.key_registry import KeyRegistry
from submax.web.server.access.last_use import LastUse
from submax.web.server.service import Service

WRONG = {"authorization": "Bearer submax.000000000000.wrong"}


@pytest.fixture
def key(store):
    """Make a key, and the header that shows it."""

    def key(*scopes, **limits):
        _, text = KeyRegistry(store).add(scopes, **limits)
        return {"authorization": f"Bearer {text}"}

    return key


def seconds_of(text):
    return datetime.fromisoformat(text).timestamp()


def test_a_key_is_refused_from_its_expiry_on(serving, store, key, eventually):
    admin = key("admin")
    http = serving(store)
    soon = datetime.fromtimestamp(time.time() + 1.0, UTC).isoformat()
    body = {"scopes": ["read"], "expires": soon, "name": "visitor"}
    answer = http.post("/keys", json=body, headers=admin)
    assert answer.status_code == 201, answer.text
    headers = {"authorization": f"Bearer {answer.json()['key']}"}
    assert http.get("/bandits", headers=headers).status_code == 200
    eventually(lambda: http.get("/bandits", headers=headers).status_code == 401)
    refused = http.get("/bandits", headers=headers)
    assert "this key has expired" in refused.json()["error"]
    shown = http.get("/keys", headers=admin).json()["keys"]
    (found,) = [one for one in shown if one["name"] == "visitor"]
    assert abs(seconds_of(found["expires"]) - seconds_of(soon)) <= 1
    assert http.get("/bandits", headers=admin).status_code == 200


@pytest.mark.parametrize("expires", ["2001-01-01", "tomorrow", "", "9999-99-99", "1e9"])
def test_an_expiry_that_is_over_or_no_time_makes_no_key(serving, store, key, expires):
    http, admin = serving(store), key("admin")
    answer = http.post("/keys", json={"scopes": ["read"], "expires": expires}, headers=admin)
    assert answer.status_code == 400
    assert "expires was" in answer.json()["error"]
    assert len(KeyRegistry(store)) == 1


def test_a_date_is_its_begin_in_utc():
    assert parsed_time("2030-01-31", 0.0) == parsed_time("2030-01-31T01:00+01:00", 0.0)
    with raises_code("invalid-input"):
        parsed_time("1970-01-01", 1.0)


def test_the_last_use_of_a_key_is_shown_and_kept(serving, store, key):
    admin, used = key("admin"), key("read", name="used")
    key("read", name="idle")
    http, begin = serving(store), int(time.time())
    http.get("/bandits", headers=used)
    shown = {one["name"]: one for one in http.get("/keys", headers=admin).json()["keys"]}
    assert begin <= seconds_of(shown["used"]["last_used"]) <= time.time()
    assert shown["idle"]["last_used"] is None
    http.close()
    kept = LastUse(store).times()
    assert set(kept) == {one["id"] for name, one in shown.items() if name != "idle"}


def test_the_uses_of_several_processes_are_merged():
    store = MemoryStore()
    first, second = LastUse(store, lambda: 10.0), LastUse(store, lambda: 20.0)
    for one, keys in ((second, ["a", "b"]), (first, ["a", "c"])):
        for key in keys:
            one.note(key)
        one.write()
        one.write()
    assert LastUse(store).times() == {"a": 20.0, "b": 20.0, "c": 10.0}


def test_wrong_keys_from_one_address_are_limited_and_valid_ones_are_not(serving, store, key):
    headers = key("read")
    http = serving(store)
    statuses = [http.get("/bandits", headers=WRONG).status_code for _ in range(20)]
    assert statuses == [401] * 10 + [429] * 10
    refused = http.get("/bandits", headers=WRONG)
    assert int(refused.headers["retry-after"]) > 0
    assert "wrong keys came from this address" in refused.json()["error"]
    assert http.get("/bandits", headers=headers).status_code == 200
    assert http.get("/bandits").status_code == 401


def test_failed_attempts_are_forgotten_with_time_and_counted_by_address(monkeypatch):
    now = [0.0]
    failed = FailedAttempts(lambda: now[0])
    assert [failed.allows("192.0.2.1") for _ in range(12)] == [True] * 10 + [False] * 2
    assert failed.allows("192.0.2.2")
    now[0] += failed_attempts.WINDOW_SECONDS / failed_attempts.MAX_FAILURES
    assert [failed.allows("192.0.2.1") for _ in range(2)] == [True, False]
    now[0] += failed_attempts.WINDOW_SECONDS
    assert [failed.allows("192.0.2.1") for _ in range(11)] == [True] * 10 + [False]
    monkeypatch.setattr(failed_attempts, "MAX_ADDRESSES", 3)
    for number in range(100):
        failed.allows(f"198.51.100.{number}")
    assert len(failed._failures) <= 4


def test_addresses_of_one_ipv6_network_are_one(seed):
    failed = FailedAttempts(lambda: 0.0)
    allowed = [failed.allows(f"2001:db8::{number + seed:x}") for number in range(11)]
    assert allowed == [True] * 10 + [False]
    assert failed.allows("2001:db8:0:1::1")


CHANGES = [
    ("create", "POST", "/bandits", {"name": "page", "actions": ["A", "B"]}, "page"),
    ("change", "POST", "/bandits/page/choices", {"verb": "add", "choice": "C"}, "page"),
    ("publish", "POST", "/bandits/page/publish", {"version": 0}, "page"),
]


def test_every_change_is_recorded_with_its_key(serving, store, key):
    admin, reader = key("admin", name="operator"), key("read")
    number = admin["authorization"].split(".")[1]
    http, begin = serving(store), int(time.time())
    for _, method, path, body, _ in CHANGES:
        assert http.request(method, path, json=body, headers=admin).status_code in (200, 201)
    made = http.post("/keys", json={"scopes": ["read"]}, headers=admin).json()
    http.delete(f"/keys/{made['id']}", headers=admin)
    # Neither of these changes anything.
    http.get("/bandits/page", headers=admin)
    assert http.post("/bandits", json=CHANGES[0][3], headers=admin).status_code == 409
    http.post("/bandits/page/decide", json={}, headers=admin)
    answer = http.get("/audit", headers=admin)
    changes = answer.json()["changes"]
    assert [(one["operation"], one["subject"]) for one in reversed(changes)] == [
        *((name, subject) for name, _, _, _, subject in CHANGES),
        ("add-key", made["id"]),
        ("revoke-key", made["id"]),
    ]
    for one in changes:
        assert (one["key"], one["name"]) == (number, "operator")
        assert begin <= seconds_of(one["at"]) <= time.time()
    assert '"choice":"C"' in changes[3]["detail"]
    assert made["key"].split(".")[2] not in answer.text
    assert http.get("/audit", headers=reader).status_code == 403


def test_a_change_without_keys_is_recorded_as_such(serving, store):
    http = serving(store)
    http.post("/bandits", json={"name": "page", "actions": ["A"]})
    (one,) = http.get("/audit").json()["changes"]
    assert (one["key"], one["name"], one["subject"]) == ("", "without a key", "page")


class NoAudit(MemoryStore):
    def append(self, stream, entries):
        if stream == STREAM:
            raise StoreError("the disk is full")
        return super().append(stream, entries)


def test_a_change_whose_record_fails_is_answered_and_logged(serving, caplog):
    http = serving(NoAudit())
    assert http.post("/bandits", json={"name": "page", "actions": ["A"]}).status_code == 201
    assert "a change was made and not recorded" in caplog.text
    assert http.get("/audit").json() == {"changes": []}


def done(*arguments):
    result = CliRunner().invoke(main, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_commands_show_names_expiries_uses_and_changes(tmp_path):
    path = tmp_path / "page.db"
    options = ("--scope", "read", "--name", "dash board", "--expires", "2130-01-31")
    number = done("keys", "add", path, *options).split(".")[1]
    assert done("keys", "list", path) == (
        f"{number}  dash board  read  all bandits, expires 2130-01-31T00:00:00Z, never used\n"
    )
    done("keys", "revoke", path, number)
    last, first = done("audit", path).splitlines()
    assert first.endswith(f"  command line  add-key  {number}  read")
    assert last.endswith(f"  command line  revoke-key  {number}")
    assert done("audit", path, "--last", "1").splitlines() == [last]


def test_a_store_without_changes_says_so(tmp_path):
    store = SQLiteStore(tmp_path / "page.db")
    Service(store).close()
    assert "No change of bandits or keys" in done("audit", tmp_path / "page.db")
