"""Keys expire and show their last use, rates are limited, and changes are recorded."""

import time
from datetime import UTC, datetime

import pytest
from waiting import wait_until

from submax.bandit.store import open_store
from submax.server.keys import Keys
from submax.server.limits import RateLimit
from submax.server.service import Service


def test_a_key_is_refused_from_its_expiry_on(serving, store, key):
    admin, now = key("admin"), [time.time()]
    service = Service(store)
    service.keys = Keys(store, lambda: now[0])
    http = serving(service)
    wait_until(lambda: service.ready)
    made = {}
    for name, seconds in (("visitor", 600.0), ("later", 1e6)):
        expires = datetime.fromtimestamp(now[0] + seconds, UTC).isoformat()
        body = {"scopes": ["read"], "expires": expires, "name": name}
        answer = http.post("/keys", json=body, headers=admin)
        assert answer.status_code == 201, answer.text
        made[name] = expires, {"authorization": f"Bearer {answer.json()['key']}"}

    def statuses():
        return [http.get("/bandits", headers=headers).status_code for _, headers in made.values()]

    assert statuses() == [200, 200]
    now[0] += 601
    assert statuses() == [401, 200]
    for one in http.get("/keys", headers=admin).json()["keys"]:
        if one["name"] in made:
            expires = datetime.fromisoformat(made[one["name"]][0])
            assert one["expires"] == expires.timestamp()


@pytest.mark.parametrize("expires", ["2001-01-01", "tomorrow", ""])
def test_an_expiry_that_is_over_or_no_time_makes_no_key(serving, store, key, expires):
    admin = key("admin")
    http = serving(store)
    answer = http.post("/keys", json={"scopes": ["read"], "expires": expires}, headers=admin)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid-input")
    assert len(list(Keys(store))) == 1


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


def test_the_uses_of_several_processes_are_merged(store):
    made = [Keys(store).add(["read"]).id for _ in range(3)]
    first, second = Keys(store, lambda: 10.0), Keys(store, lambda: 20.0)
    for keys, used in ((second, made[:2]), (first, [made[0], made[2]])):
        for number in used:
            keys.note_use(number)
        keys.write_uses()
        keys.write_uses()
    uses = {key.id: key.used for key in Keys(store)}
    assert uses == dict(zip(made, (20.0, 20.0, 10.0), strict=True))


def test_a_large_cost_is_paid_before_the_next_request():
    now = [0.0]
    limit = RateLimit(clock=lambda: now[0])
    assert limit.allows("me", 10.0, cost=100.0)
    for now[0] in (1.0, 5.0, 9.0):
        assert not limit.allows("me", 10.0)
    now[0] = 10.0
    assert limit.allows("me", 10.0)
    assert limit.allows("you", 10.0)


CHANGES = {
    "create": ("/bandits", {"name": "page", "actions": ["A", "B"]}),
    "change": ("/bandits/page/choices", {"verb": "add", "choice": "C"}),
    "publish": ("/bandits/page/publish", {"version": 0}),
}


def test_every_change_is_recorded_with_its_key(serving, store, key):
    admin, reader = key("admin", name="operator"), key("read")
    number = admin["authorization"].split(".")[1]
    http, begin = serving(store), int(time.time())
    for path, body in CHANGES.values():
        assert http.post(path, json=body, headers=admin).status_code in (200, 201)
    made = http.post("/keys", json={"scopes": ["read"]}, headers=admin).json()
    http.delete(f"/keys/{made['id']}", headers=admin)
    # Neither of these changes anything.
    http.get("/bandits/page", headers=admin)
    assert http.post("/bandits", json=CHANGES["create"][1], headers=admin).status_code == 409
    http.post("/bandits/page/decide", json={}, headers=admin)
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
