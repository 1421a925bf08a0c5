"""What strangers, visitors of pages and wrong headers may not do."""

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

SHOP = "https://shop.example"
ARMS = {"name": "arms", "actions": ["A", "B"]}
DECIDE, REWARD = "/bandits/arms/decide", "/bandits/arms/reward"
RANDOM = "5f8a1d7e-6c57-4f0e-9b1e-0d7c1c1a2b3c"


# Browser keys, which every visitor can read


@pytest.fixture
def page(serving, store, key):
    """A server, and the headers of a page and of an application."""
    declare(store, "arms", {"actions": ["A", "B"]})
    declare(store, "amounts", {"actions": ["A"], "rewards": "continuous"})
    declare(
        store, "bounded", {"actions": ["A"], "rewards": {"kind": "continuous", "low": 0, "high": 9}}
    )
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
    many, statuses = {"requests": [{}] * 300}, []
    for _ in range(2):
        answer = page.post(f"{DECIDE}-many", json=many, headers=page.browser)
        statuses.append(answer.status_code)
    assert statuses == [200, 429]


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


def signed_in(http, headers):
    answer = http.post("/login", headers=headers)
    assert answer.status_code == 200
    return {"cookie": answer.headers["set-cookie"].partition(";")[0]}


def test_a_copy_of_the_store_makes_nobody_an_administrator(serving, store, key, tmp_path):
    """What is in a backup is no cookie and no key, nor can one be made of it."""
    headers = key("admin")
    http = serving(store)
    cookie = signed_in(http, headers)["cookie"].partition("=")[2]
    store.backup(tmp_path / "copy.db")
    held = (tmp_path / "copy.db").read_bytes()
    assert cookie.encode() not in held
    assert headers["authorization"].encode() not in held
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
