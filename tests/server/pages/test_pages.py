"""Pages for browsers and data for programs, at the same addresses."""

import re

import pytest

from submax.live.declaring.declare import declare
from submax.live.store.memory_store import MemoryStore
from submax.web.server.pages.operations import page_operations

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
NASTY = "<img src=x onerror=alert(1)>\"'"
OF_BANDIT = [one.path for one in page_operations() if "{name}" in one.path]


@pytest.fixture(scope="module")
def http(shared_serving):
    """A server of a bandit that has decided and got rewards."""
    store = MemoryStore()
    declare(store, "b", {"actions": ["A", NASTY], "reward_wait": 0})
    http = shared_serving(store)
    made = http.post("/bandits/b/decide-many", json={"requests": [{}] * 200}).json()["decisions"]
    rewards = [{"id": one["id"], "value": float(one["action"] == "A")} for one in made]
    http.post("/bandits/b/reward-many", json={"rewards": rewards})
    return http


@pytest.mark.parametrize("path", ["/", *OF_BANDIT])
def test_a_browser_gets_a_safe_page_and_a_program_the_same_numbers(http, path):
    path = path.format(name="b")
    page = http.get(path, headers=BROWSER)
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "<img" not in page.text
    data = http.get(path)
    assert data.headers["content-type"] == "application/json"
    twin = "/index.json" if path == "/" else f"{path}.json"
    assert http.get(twin, headers=BROWSER).json().keys() == data.json().keys()


def test_pages_load_only_assets_of_this_server_that_exist(http):
    page = http.get("/", headers=BROWSER).text
    loaded = re.findall(r'(?:src|href)="([^"#]+)"', page)
    assets = [one for one in loaded if one.startswith("/assets/")]
    assert assets
    assert all(one.startswith("/") for one in loaded)
    for one in assets:
        response = http.get(one)
        assert response.status_code == 200
        assert "immutable" in response.headers["cache-control"]
        if "/vendor/" in one:
            # The licences of what others wrote come with it.
            licence = re.sub(r"\.min\.\w+$", ".LICENSE.txt", one)
            assert http.get(licence).status_code == 200
    assert http.get("/assets/old/../secret").status_code == 404
    assert http.get("/assets/old/dashboard.css").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/nothing", 404, "not-found"),
        ("/bandits/none/overview", 404, "not-found"),
        ("/bandits/b/nothing", 404, "not-found"),
        ("/bandits/b/decide", 405, "method-not-allowed"),
        ("/bandits/b/overview?span=1y", 400, "invalid-input"),
        ("/bandits/b/arms?solt=<b>", 400, "invalid-input"),
    ],
)
def test_a_browser_at_a_wrong_address_gets_a_page_with_navigation(http, path, status, code):
    page, data = http.get(path, headers=BROWSER), http.get(path)
    assert (page.status_code, data.status_code, data.json()["code"]) == (status, status, code)
    assert page.headers.get("allow") == data.headers.get("allow")
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert '<a href="/">' in page.text
    assert "<b>" not in page.text


def test_a_page_that_has_not_changed_is_not_sent_again(http):
    def load(known=""):
        # As htmx asks for the page that it shows.
        headers = {"accept": "*/*", "hx-request": "true", "if-none-match": known}
        return http.get("/bandits/b/settings", headers=headers)

    assert load().headers["content-type"].startswith("text/html")
    tag = load().headers["etag"]
    same = load(tag)
    assert (same.status_code, same.content) == (304, b"")
    http.post("/bandits/b/pause")
    changed = load(tag)
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag
    http.post("/bandits/b/resume")


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/bandits/b", "/bandits/b/overview"),
        ("/bandits/b?span=2d", "/bandits/b/overview?span=2d"),
        ("/bandits/b%3Fspan=2d", "/bandits/b%3Fspan%3D2d/overview"),
    ],
)
def test_a_browser_at_the_address_of_a_bandit_is_sent_to_its_overview(http, path, location):
    response = http.get(path, headers=BROWSER)
    assert (response.status_code, response.headers["location"]) == (307, location)
