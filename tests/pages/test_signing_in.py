"""People sign in with a key, see what it allows, and sign out."""

import pytest
from waiting import wait_until

from submax.bandit.declaring import declare
from submax.server.keys import Keys

SCOPES = {"read": ["read"], "decide": ["decide"], "admin": ["admin"], "left": ["read"]}


@pytest.fixture(scope="module")
def keys():
    return {}


@pytest.fixture(scope="module")
def http(keys, served):
    def fill(store):
        declare(store, "b", {"actions": ["A", "B"]})
        for name, scopes in SCOPES.items():
            keys[name] = Keys(store).add(scopes).key

    return served(fill)


@pytest.fixture
def sign_in(http, keys):
    def sign_in(name: str) -> dict[str, str]:
        header = {"authorization": f"Bearer {keys[name]}"}
        cookie = http.post("/login", headers=header).headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        return {"cookie": cookie.partition(";")[0]}

    return sign_in


def test_without_a_cookie_one_is_sent_to_the_login(http):
    response = http.page("/")
    assert (response.status_code, response.headers["location"]) == (303, "/login?next=/")
    # An address with a sign of queries leads there as well.
    response = http.page("/bandits/a&b=1/overview")
    page = http.page(response.headers["location"])
    assert page.status_code == 200
    assert 'data-then="/bandits/a&amp;b=1/overview"' in page.text
    assert '<a href="/login">' in http.page("/nothing").text


def test_a_wrong_key_and_one_that_may_not_read_cannot_sign_in(http, keys):
    for key, status in (("submax.000000000000.wrong", 401), (keys["decide"], 403)):
        header = {"authorization": f"Bearer {key}"}
        assert http.post("/login", headers=header).status_code == status


def test_a_reader_sees_and_changes_nothing(http, sign_in):
    signed = sign_in("read")
    page = http.page("/bandits/b/arms", headers=signed)
    assert page.status_code == 200
    assert "Sign out" in page.text
    assert "Pause" not in page.text
    assert 'href="/keys"' not in page.text
    body = {"verb": "pause", "choice": "A"}
    assert http.post("/bandits/b/choices", headers=signed, json=body).status_code == 403


def test_an_operator_changes_from_this_site_and_not_from_another(http, sign_in):
    signed = sign_in("admin")
    page = http.page("/bandits/b/arms", headers=signed).text
    assert 'href="/keys"' in page
    body = {"verb": "pause", "choice": "A"}
    evil = {**signed, "origin": "https://evil.example"}
    assert http.post("/bandits/b/choices", headers=evil, json=body).status_code == 403
    assert http.post("/bandits/b/choices", headers=signed, json=body).status_code == 200


def test_a_session_ends_with_its_key(http, keys, sign_in):
    signed = sign_in("left")
    assert http.page("/", headers=signed).status_code == 200
    http.app.service.keys.revoke(keys["left"].split(".")[1])
    wait_until(lambda: http.page("/", headers=signed).status_code == 303)


def test_signing_out_ends_the_session(http, sign_in):
    signed = sign_in("read")
    assert http.page("/bandits/b/overview", headers=signed).status_code == 200
    assert "Max-Age=0" in http.post("/logout", headers=signed).headers["set-cookie"]
    # Whoever has copied the cookie is not signed in any more.
    assert http.page("/bandits/b/overview", headers=signed).status_code == 303


def test_the_page_of_keys_has_no_secret(http, keys, sign_in):
    page = http.page("/keys", headers=sign_in("admin")).text
    assert "Revoke" in page
    for text in keys.values():
        _, number, secret = text.split(".")
        assert secret not in page
        assert number in page or text == keys["left"]
