"""Pages for browsers and data for programs, at the same addresses."""

import re

import pytest

from submax.live.declaring.declare import declare
from submax.web.dashboard.asset_files import Assets
from submax.web.server.access.key_registry import KeyRegistry
from submax.web.server.access.sessions import COOKIE
from submax.web.server.pages.operations import page_operations

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
NASTY = "<img src=x onerror=alert(1)>\"'"
OF_BANDIT = [one.path for one in page_operations() if "{name}" in one.path]


@pytest.fixture
def bandit(http):
    http.post("/bandits", json={"name": "b", "actions": ["A", NASTY], "reward_wait": 0})
    made = http.post("/bandits/b/decide-many", json={"requests": [{}] * 200}).json()["decisions"]
    rewards = [{"id": one["id"], "value": float(one["action"] == "A")} for one in made]
    http.post("/bandits/b/reward-many", json={"rewards": rewards})
    return http


@pytest.mark.parametrize("path", ["/", *OF_BANDIT])
def test_a_browser_gets_a_page_and_a_program_the_same_numbers(bandit, path):
    path = path.format(name="b")
    page = bandit.get(path, headers=BROWSER)
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    data = bandit.get(path)
    assert data.headers["content-type"] == "application/json"
    twin = "/index.json" if path == "/" else f"{path}.json"
    assert bandit.get(twin, headers=BROWSER).json().keys() == data.json().keys()


@pytest.mark.parametrize("path", OF_BANDIT)
def test_names_are_shown_as_text(bandit, path):
    page = bandit.get(path.format(name="b"), headers=BROWSER).text
    assert NASTY not in page
    assert "<img" not in page


def test_every_page_is_described(http):
    described = http.get("/openapi.json").json()["paths"]
    assert all(one.path in described for one in page_operations())


def test_pages_load_only_assets_of_this_server_that_exist(bandit):
    page = bandit.get("/", headers=BROWSER).text
    loaded = re.findall(r'(?:src|href)="([^"#]+)"', page)
    assets = [one for one in loaded if one.startswith("/assets/")]
    assert len(assets) == 8
    assert all(one.startswith("/") for one in loaded)
    for one in assets:
        response = bandit.get(one)
        assert response.status_code == 200
        assert "immutable" in response.headers["cache-control"]
    assert bandit.get("/assets/old/../secret").status_code == 404
    assert bandit.get("/assets/old/dashboard.css").headers["cache-control"] == "no-cache"


def test_licences_of_what_others_wrote_come_with_it():
    paths = Assets().paths()
    for library in ("htmx", "uplot"):
        assert f"vendor/{library}.min.js" in paths
        assert f"vendor/{library}.LICENSE.txt" in paths


def test_a_page_that_does_not_exist_says_so_as_a_page(http):
    page = http.get("/bandits/none/overview", headers=BROWSER)
    assert page.status_code == 404
    assert "There is no bandit" in page.text
    assert http.get("/bandits/none/overview").json()["code"] == "not-found"


@pytest.mark.parametrize("path", ["/nothing", "/bandits/b/nothing", "/bandits/b/decide"])
def test_a_browser_at_an_unknown_address_gets_a_page_with_navigation(bandit, path):
    page = bandit.get(path, headers=BROWSER)
    data = bandit.get(path)
    assert page.status_code == data.status_code
    assert page.status_code == (405 if path.endswith("decide") else 404)
    assert page.headers.get("allow") == data.headers.get("allow")
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert '<a href="/">All bandits</a>' in page.text
    assert '<nav aria-label="Server">' in page.text
    assert data.json()["code"] in ("not-found", "method-not-allowed")


def test_a_page_that_has_not_changed_is_not_sent_again(bandit):
    def load(known=""):
        headers = {**BROWSER, "hx-request": "true", "if-none-match": known}
        return bandit.get("/bandits/b/settings", headers=headers)

    tag = load().headers["etag"]
    same = load(tag)
    assert (same.status_code, same.content) == (304, b"")
    bandit.post("/bandits/b/pause")
    changed = load(tag)
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


@pytest.mark.parametrize(("value", "kind"), [("true", "text/html"), ("", "application/json")])
def test_only_the_word_that_htmx_sends_asks_for_a_page(bandit, value, kind):
    answer = bandit.get("/bandits/b/settings", headers={"hx-request": value})
    assert answer.headers["content-type"].startswith(kind)


def test_a_browser_at_the_address_of_a_bandit_is_sent_to_its_overview(bandit):
    response = bandit.get("/bandits/b", headers=BROWSER)
    assert response.status_code == 307
    assert response.headers["location"] == "/bandits/b/overview"
    assert bandit.get("/bandits/b").json()["name"] == "b"


def test_what_stands_behind_the_address_of_a_bandit_goes_along_to_its_overview(bandit):
    response = bandit.get("/bandits/b?span=2d", headers=BROWSER)
    assert response.headers["location"] == "/bandits/b/overview?span=2d"
    strange = bandit.get("/bandits/b%3Fspan=2d", headers=BROWSER)
    assert strange.headers["location"] == "/bandits/b%3Fspan%3D2d/overview"


def test_a_browser_that_gives_an_unknown_parameter_gets_a_page_that_names_it(bandit):
    page = bandit.get("/bandits/b/arms?solt=s", headers=BROWSER)
    assert page.status_code == 400
    assert "This address is not valid" in page.text
    assert "nown query parameter &#39;solt&#39;: did you mean &#39;slot&#39;?" in page.text


def test_a_wrong_span_is_refused(bandit):
    response = bandit.get("/bandits/b/overview?span=1y")
    assert response.status_code == 400
    assert "3h, 2d, 60d, 2y" in response.json()["error"]


class TestSigningIn:
    @pytest.fixture
    def keys(self, store):
        declare(store, "b", {"actions": ["A", "B"]})
        registry = KeyRegistry(store)
        return {scope: registry.add([scope])[1] for scope in ("read", "decide", "admin")}

    @pytest.fixture
    def http(self, keys, serving, store):
        # Keys that are there from the start are known at once.
        return serving(store)

    @pytest.fixture
    def sign_in(self, http, keys):
        def sign_in(scope: str) -> dict[str, str]:
            header = {"authorization": f"Bearer {keys[scope]}"}
            cookie = http.post("/login", headers=header).headers["set-cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            return {"cookie": cookie.partition(";")[0], **BROWSER}

        return sign_in

    def token(self, page: str) -> str:
        return re.search(r'name="csrf-token" content="(\w+)"', page).group(1)

    def test_without_a_cookie_one_is_sent_to_the_login(self, http):
        response = http.get("/", headers=BROWSER)
        assert response.status_code == 303
        assert response.headers["location"] == "/login?next=/"
        assert "Sign in" in http.get("/login?next=/", headers=BROWSER).text

    def test_an_address_with_a_sign_of_queries_leads_to_the_login_as_well(self, http):
        response = http.get("/bandits/a&b=1/overview", headers=BROWSER)
        page = http.get(response.headers["location"], headers=BROWSER)
        assert page.status_code == 200
        assert 'data-then="/bandits/a&amp;b=1/overview"' in page.text

    def test_the_login_leads_to_no_other_site(self, http):
        for wanted in ("https://evil.example/", "//evil.example/", "/\\evil.example"):
            page = http.get("/login", params={"next": wanted}, headers=BROWSER).text
            assert 'data-then="/"' in page

    def test_a_wrong_key_is_refused(self, http):
        wrong = {"authorization": "Bearer submax.000000000000.wrong"}
        assert http.post("/login", headers=wrong).status_code == 401

    def test_a_reader_sees_and_changes_nothing(self, http, sign_in):
        signed = sign_in("read")
        page = http.get("/bandits/b/arms", headers=signed)
        assert page.status_code == 200
        assert "Pause" not in page.text
        sent = {**signed, "x-csrf-token": self.token(page.text)}
        body = {"verb": "pause", "choice": "A"}
        assert http.post("/bandits/b/choices", headers=sent, json=body).status_code == 403

    @pytest.mark.parametrize("scope", ["read", "admin"])
    @pytest.mark.parametrize("path", ["/", "/bandits/b/arms", "/keys", "/nothing", "/login"])
    def test_whoever_is_signed_in_can_sign_out(self, http, sign_in, scope, path):
        page = http.get(path, headers=sign_in(scope)).text
        assert "Sign out" in page
        assert self.token(page)
        assert ("Keys</a>" in page) == (scope == "admin" and path != "/login")

    def test_whoever_is_not_signed_in_is_offered_to(self, http):
        page = http.get("/nothing", headers=BROWSER).text
        assert "Sign out" not in page
        assert '<a href="/login">Sign in</a>' in page
        assert "Keys</a>" not in page

    def test_an_operator_changes_with_the_token_and_not_without(self, http, sign_in):
        signed = sign_in("admin")
        page = http.get("/bandits/b/arms", headers=signed).text
        body = {"verb": "pause", "choice": "A"}
        assert http.post("/bandits/b/choices", headers=signed, json=body).status_code == 401
        sent = {**signed, "x-csrf-token": self.token(page)}
        assert http.post("/bandits/b/choices", headers=sent, json=body).status_code == 200

    def test_a_key_that_may_not_read_cannot_sign_in(self, http, keys):
        header = {"authorization": f"Bearer {keys['decide']}"}
        assert http.post("/login", headers=header).status_code == 403

    def test_a_session_ends_with_its_key(self, http, store, sign_in, eventually):
        signed = sign_in("read")
        assert http.get("/", headers=signed).status_code == 200
        registry = KeyRegistry(store)
        registry.revoke(next(key.id for key in registry if key.scopes == ("read",)))
        eventually(lambda: http.get("/", headers=signed).status_code == 303)

    @pytest.mark.parametrize("cookie", ["x", "a.1.b", "a.b.c", f"{'9' * 12}.{'9' * 30}.c", "é.1.x"])
    def test_a_made_up_cookie_is_worth_nothing(self, http, cookie):
        headers = {"cookie": f"{COOKIE}={cookie}".encode(), **BROWSER}
        assert http.get("/", headers=headers).status_code == 303

    def test_signing_out_takes_the_cookie_away(self, http):
        assert "Max-Age=0" in http.post("/logout").headers["set-cookie"]
