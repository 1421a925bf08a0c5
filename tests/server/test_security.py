"""What strangers, pages of other sites, visitors of pages and wrong headers may not do."""

import re
from threading import Event

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from submax.bandit.declaring import declare
from submax.bandit.durable import open_bandit
from submax.bandit.store import open_store
from submax.core.errors import StoreError
from submax.server.access import FORWARDED, local_path
from submax.server.service import THREADS

from .conftest import contents, created, decided, done

SHOP, EVIL = "https://shop.example", "https://evil.example"
ARMS = {"name": "arms", "actions": ["A", "B"]}
DECIDE, REWARD = "/bandits/arms/decide", "/bandits/arms/reward"
RANDOM = "5f8a1d7e-6c57-4f0e-9b1e-0d7c1c1a2b3c"


# Browser keys, which every visitor can read


@pytest.fixture
def page(serving, store, key):
    """A server, and the headers of a page and of an application."""
    bounded = {"kind": "continuous", "low": 0, "high": 9}
    for name, rewards in {"arms": "binary", "amounts": "continuous", "bounded": bounded}.items():
        declare(store, name, {"actions": ["A", "B"], "rewards": rewards})
    browser, server = key("decide", "reward", origins=[SHOP]), key("admin")
    http = serving(store)
    http.browser, http.server = {**browser, "origin": SHOP}, server
    return http


def test_a_page_rewards_what_exists_and_cannot_make_rewards_of_others_conflict(page, store):
    """A reward for an id that is to come would be stored before the true one."""
    for identifier, status in (("order-17", 403), (RANDOM, 404)):
        body = {"id": identifier, "value": 0}
        done(page.post(REWARD, json=body, headers=page.browser), status)
        many = {"rewards": [body]}
        done(page.post(f"{REWARD}-many", json=many, headers=page.browser), status)
    assert contents(store)["early_reward"] == []
    made = done(page.post(DECIDE, json={}, headers=page.server))
    body = {"id": made["id"], "value": 1}
    assert done(page.post(REWARD, json=body, headers=page.browser))["status"] == "accepted"
    # Ids that an application has chosen can be guessed.
    done(page.post(DECIDE, json={"id": "order-17"}, headers=page.server))
    done(page.post(REWARD, json={"id": "order-17", "value": 1}, headers=page.browser), 403)


def test_a_page_learns_no_unit_and_forces_no_arm(page):
    made = done(page.post(DECIDE, json={"unit": "customer-7"}, headers=page.server))
    again = done(page.post(DECIDE, json={"id": made["id"]}, headers=page.browser))
    assert again["repeated"]
    assert again["unit"] is None
    for path, body in ((DECIDE, {"eligible": ["A"]}), (DECIDE, {"id": "order-17"})):
        done(page.post(path, json=body, headers=page.browser), 403)
        done(page.post(f"{path}-many", json={"requests": [body]}, headers=page.browser), 403)


def test_a_page_rewards_only_within_bounds(page):
    for bandit, status in (("amounts", 403), ("bounded", 200)):
        made = done(page.post(f"/bandits/{bandit}/decide", json={}, headers=page.server))
        reward = {"id": made["id"], "value": 5}
        done(page.post(f"/bandits/{bandit}/reward", json=reward, headers=page.browser), status)


def test_a_page_has_a_low_rate(page):
    for status in (200, 429):
        many = {"requests": [{}] * 300}
        done(page.post(f"{DECIDE}-many", json=many, headers=page.browser), status)


def test_slow_requests_leave_the_server_ready(http):
    """Every thread for pages is busy, and neither health nor decisions wait for them."""
    created(http, ARMS)
    service, go = http.app.service, Event()
    slow = [service._threads.submit(go.wait, 60) for _ in range(THREADS + 10)]
    try:
        for path in ("/healthz", "/readyz"):
            assert http.get(path).status_code == 200
        decided(http)
    finally:
        go.set()
    assert all(one.result(60) for one in slow)


# Keys and sessions


def test_the_first_key_over_http_locks_nobody_out(http):
    refused = done(http.post("/keys", json={"scopes": ["read"]}), 409)
    assert refused["code"] == "first-key"
    assert http.get("/bandits").status_code == 200
    made = done(http.post("/keys", json={"scopes": ["admin"]}), 201)
    headers = {"authorization": f"Bearer {made['key']}"}
    done(http.post("/keys", json={"scopes": ["read"]}, headers=headers), 201)


def test_a_copy_of_the_store_makes_nobody_an_administrator(serving, store, key, tmp_path):
    """What is in a backup is no cookie and no key, nor can one be made of it."""
    headers = key("admin")
    http = serving(store)
    cookie = http.post("/login", headers=headers).cookies["submax_session"]
    store.backup(tmp_path / "copy.db")
    held = (tmp_path / "copy.db").read_bytes()
    assert cookie.encode() not in held
    _, number, secret = headers["authorization"].split(".")
    assert number.encode() in held
    assert secret.encode() not in held
    with open_store(tmp_path / "copy.db", read_only=True) as copy:
        texts = [str(value) for table in ("session", "key", "setting")
                 for row in copy.select(f"select * from {table}") for value in row]  # fmt: skip
    for text in texts:
        sent = {"cookie": f"submax_session={re.sub(r'[^!-~]', '', text)}"}
        assert http.get("/bandits", headers=sent).status_code == 401


@pytest.mark.parametrize(
    "path",
    ["/\t/evil.example", "//evil.example", "/\\evil.example", "https://evil.example", "", None,
     "/%09/evil.example\n", "/\n/evil", "javascript:alert(1)", "/ /evil"],
)  # fmt: skip
def test_signing_in_leads_to_this_server_only(path):
    assert local_path(path) == "/"
    assert local_path("/bandits/shop/overview?span=2d") == "/bandits/shop/overview?span=2d"


# What strangers learn


def test_strangers_do_not_learn_where_the_store_is(http, store, monkeypatch):
    def fail():
        raise StoreError("the disk of /var/secret.db on db.internal is full")

    monkeypatch.setattr(store, "check_writable", fail)
    refused = done(http.get("/readyz"), 503)
    assert "secret" not in refused["error"]
    assert "internal" not in refused["error"]


@pytest.mark.parametrize("header", FORWARDED)
def test_without_keys_nothing_is_answered_through_a_proxy(http, header):
    assert http.get("/bandits", headers={header: "192.0.2.1"}).status_code == 403
    assert http.get("/bandits").status_code == 200


# Headers of any kind


NAMES = ["host", "origin", "authorization", "cookie", "x-forwarded-for", "x-forwarded-proto",
         "content-type", "content-length", "x-request-id", "accept", "range",
         "traceparent", "access-control-request-method", "hx-request", "if-none-match"]  # fmt: skip
PIECES = st.one_of(
    st.sampled_from(["http://[", "[", "]", "null", "http://", "127.0.0.1", "Bearer submax.0.0",
                     "submax_session=", "submax_session=\"\\", "text/html", "bytes=0-", "::1",
                     "application/json", "-1", "9" * 5000, "true", ",", ";", "00-0-0-0"]),
    st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=40),
)  # fmt: skip
HEADERS = st.lists(st.tuples(st.sampled_from(NAMES), PIECES), max_size=6)


@pytest.fixture(scope="module", params=[False, True], ids=["no keys", "keys"])
def fuzzed(shared_serving, tmp_path_factory, request):
    store = open_store(tmp_path_factory.mktemp("fuzzed") / "served.db")
    open_bandit(store, name="arms", actions=["A", "B"], background=False).stop()
    http = shared_serving(store)
    if request.param:
        http.app.service.keys.add(["admin"])
    return http


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(headers=HEADERS, path=st.sampled_from(["/bandits", DECIDE, "/login", "/healthz", "/"]))
def test_no_header_makes_the_server_fail(fuzzed, method, headers, path):
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    answer = fuzzed.request(method, path, headers=raw, content=b"{}")
    assert answer.status_code < 500, (headers, answer.text)


# Pages of other sites

ALLOWED = "access-control-allow-origin"


@pytest.fixture
def keys(store, key):
    """Keys by name, as headers, in a store that is served after they were made."""
    declare(store, "arms", {"actions": ["A", "B"]})
    return {
        "reward": key("reward", bandits=["arms"], origins=[SHOP]),
        "decide": key("decide", "reward", bandits=["arms"], origins=[f" {SHOP}/"]),
        "admin": key("admin"),
    }


def preflight(http, path, origin, method="POST"):
    headers = {"origin": origin, "access-control-request-method": method}
    return http.request("OPTIONS", path, headers=headers)


def test_a_page_of_a_declared_site_rewards_and_reads_the_answer(keys, http):
    asked = preflight(http, REWARD, SHOP)
    assert (asked.status_code, asked.headers[ALLOWED]) == (200, SHOP)
    assert "POST" in asked.headers["access-control-allow-methods"]
    assert "authorization" in asked.headers["access-control-allow-headers"]
    given = http.post(DECIDE, json={}, headers={**keys["decide"], "origin": SHOP}).json()
    body = {"id": given["id"], "value": 1}
    answer = http.post(REWARD, json=body, headers={**keys["reward"], "origin": SHOP})
    assert (answer.status_code, answer.headers[ALLOWED]) == (200, SHOP)
    assert answer.headers["vary"] == "Origin"
    # Errors can be read as well.
    wrong = http.post(REWARD, json={"id": ""}, headers={**keys["reward"], "origin": SHOP})
    assert (wrong.status_code, wrong.headers[ALLOWED]) == (400, SHOP)


def test_a_page_of_another_site_is_told_why_not_and_nothing_is_stored(keys, http, store):
    before = contents(store)
    asked = preflight(http, REWARD, EVIL)
    sent = http.post(
        REWARD, json={"id": "d1", "value": 1}, headers={**keys["reward"], "origin": EVIL}
    )
    assert (asked.status_code, sent.status_code) == (400, 403)
    assert sent.json()["code"] == "origin-not-allowed"
    assert not {ALLOWED} & {*asked.headers, *sent.headers}
    assert contents(store) == before


@pytest.mark.parametrize(
    ("name", "origin", "code"),
    [
        ("decide", SHOP, None),
        ("reward", SHOP, "forbidden"),
        ("admin", SHOP, "origin-not-allowed"),
        # Pages of the server itself need no declaration.
        ("admin", "http://127.0.0.1", None),
        # With keys a page of this machine is like any other.
        ("decide", "http://localhost:3000", "origin-not-allowed"),
    ],
)
def test_pages_decide_only_if_their_key_is_for_them_and_may(keys, http, name, origin, code):
    answer = http.post(DECIDE, json={}, headers={**keys[name], "origin": origin})
    assert answer.status_code == (403 if code else 200)
    assert answer.json().get("code") == code
    assert preflight(http, DECIDE, origin).status_code == (200 if origin == SHOP else 400)


def test_other_operations_are_not_for_pages(keys, http):
    for path in ("/bandits", "/keys", "/bandits/arms", "/bandits/arms/export"):
        assert preflight(http, path, SHOP, "GET").status_code == 400
    # Without the headers of a browser this is no preflight.
    assert http.request("OPTIONS", REWARD).status_code == 405


def test_without_keys_a_page_of_this_machine_decides_and_rewards_only(serving, store):
    declare(store, "arms", {"actions": ["A", "B"]})
    http = serving(store)
    page = {"origin": "http://localhost:3000"}
    assert preflight(http, DECIDE, page["origin"]).status_code == 200
    answer = http.post(DECIDE, json={}, headers=page)
    assert (answer.status_code, answer.headers[ALLOWED]) == (200, page["origin"])
    assert http.get("/bandits", headers=page).status_code == 403
    for other in (EVIL, "null", "http://[", "http://localhost.evil.example"):
        assert http.post(DECIDE, json={}, headers={"origin": other}).status_code == 403
