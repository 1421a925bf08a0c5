"""Pages of declared sites may decide and reward from a browser, with a key for browsers."""

import pytest

from submax.bandit.declaring import declare

SHOP, EVIL = "https://shop.example", "https://evil.example"
ALLOWED = "access-control-allow-origin"
REWARD, DECIDE = "/bandits/page/reward", "/bandits/page/decide"


@pytest.fixture
def keys(store, key):
    """Keys by name, as headers."""
    declare(store, "page", {"actions": ["A", "B"]})
    return {
        "reward": key("reward", bandits=["page"], origins=[SHOP]),
        "decide": key("decide", "reward", bandits=["page"], origins=[f" {SHOP}/"]),
        "server": key("reward", bandits=["page"]),
        "admin": key("admin"),
    }


@pytest.fixture
def http(serving, store, keys):
    return serving(store)


def preflight(http, path, origin, method="POST"):
    headers = {"origin": origin, "access-control-request-method": method}
    return http.request("OPTIONS", path, headers=headers)


def test_a_page_of_a_declared_site_rewards_and_reads_the_answer(http, keys):
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


def test_a_page_of_another_site_is_told_why_not_and_nothing_is_stored(http, keys, events):
    before = events()
    asked = preflight(http, REWARD, EVIL)
    sent = http.post(
        REWARD, json={"id": "d1", "value": 1}, headers={**keys["reward"], "origin": EVIL}
    )
    assert (asked.status_code, sent.status_code) == (400, 403)
    assert sent.json()["code"] == "origin-not-allowed"
    assert not {ALLOWED} & {*asked.headers, *sent.headers}
    assert events() == before


def test_a_key_that_is_not_for_pages_is_refused_there(http, keys):
    for name in ("server", "admin"):
        headers = {**keys[name], "origin": SHOP}
        answer = http.post(REWARD, json={"id": "d1", "value": 1}, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "origin-not-allowed")


def test_pages_decide_only_if_their_key_may_and_own_pages_need_no_declaration(http, keys):
    for name, status in (("reward", 403), ("decide", 200)):
        answer = http.post(DECIDE, json={}, headers={**keys[name], "origin": SHOP})
        assert answer.status_code == status
    own = http.get("/bandits", headers={**keys["admin"], "origin": "http://127.0.0.1"})
    assert own.status_code == 200


def test_other_operations_are_not_for_pages(http):
    for path in ("/bandits", "/keys", "/bandits/page", "/bandits/page/export"):
        assert preflight(http, path, SHOP, "GET").status_code == 400
    # Without the headers of a browser this is no preflight.
    assert http.request("OPTIONS", REWARD).status_code == 405


def test_without_keys_a_page_of_this_machine_decides_and_rewards_only(serving, store):
    declare(store, "page", {"actions": ["A", "B"]})
    http = serving(store)
    page = {"origin": "http://localhost:3000"}
    assert preflight(http, DECIDE, page["origin"]).status_code == 200
    answer = http.post(DECIDE, json={}, headers=page)
    assert (answer.status_code, answer.headers[ALLOWED]) == (200, page["origin"])
    assert http.get("/bandits", headers=page).status_code == 403
    for other in (EVIL, "null", "http://[", "http://localhost.evil.example"):
        assert http.post(DECIDE, json={}, headers={"origin": other}).status_code == 403


def test_with_keys_a_page_of_this_machine_is_like_any_other(http, keys):
    headers = {**keys["decide"], "origin": "http://localhost:3000"}
    assert http.post(DECIDE, json={}, headers=headers).status_code == 403
    assert preflight(http, DECIDE, headers["origin"]).status_code == 400
