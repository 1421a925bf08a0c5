"""Pages over HTTP: what browsers and programs get, what they load, and every link and form."""

import html
import json
import re
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
from waiting import wait_until

from submax.bandit.declaring import declare
from submax.bandit.durable import DurableBandit
from submax.bandit.settings import FIXED, SETTING_TYPES
from submax.server.pages.routes import PAGES

pytestmark = pytest.mark.filterwarnings("ignore::submax.core.errors.ContextIgnoredWarning")
NASTY = "<img src=x onerror=alert(1)>\"'"
SHARED = ["/", "/keys", "/audit", "/login"]
OF_BANDIT = [f"/bandits/b/{end}" for end in PAGES]
ARMS, DECISIONS = 300, 4000
FILLED = "u%26v%3D1"
"""The text that is filled into forms, quoted as by a browser."""
EXPECTED = {
    "/bandits/b/overview": {"span"},
    "/bandits/b/arms": {"slot", "first", "second"},
    "/bandits/b/decisions": {"id", "unit"},
}
"""The parameters that the pages themselves use, by address."""


def fill(store):
    """A bandit with two slots and two fields, of whose arms there are several pages.

    The names have characters that have a meaning in addresses and in HTML.
    """
    arms = [NASTY, *(f"arm {number} & more" for number in range(1, ARMS))]
    actions = {"first & second": arms, "other": ["A", "B"]}
    fields = {"a & b": ["x", NASTY], "country?": ["fr", "de"]}
    declaration = {"actions": actions, "context": fields, "reward_wait": 0, "policy": "random"}
    declare(store, "b", {**declaration, "sticky": "none"})
    bandit = DurableBandit(store, "b", background=False)
    request = {"context": {"a & b": NASTY, "country?": "fr"}, "unit": "u&v=1"}
    for _ in range(DECISIONS // 1000):
        made = bandit.decide_many([request] * 1000)
        bandit.reward_many([{"id": one.id, "value": 1.0} for one in made])


@pytest.fixture(scope="module")
def http(served):
    return served(fill)


def attributes(text):
    """The names of all attributes of a page; a script that runs on an event begins with on."""
    names = set()
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, found: names.update(name for name, _ in found)
    parser.feed(text)
    return names


@pytest.mark.parametrize("path", [*SHARED, *OF_BANDIT])
def test_a_browser_gets_a_safe_page_of_bounded_size(http, path):
    page = http.page(path)
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "<img" not in page.text
    assert "<script>" not in page.text
    assert not any(name.startswith("on") for name in attributes(page.text))
    assert len(page.content) < 400_000


def test_pages_load_only_assets_of_this_server_that_exist(http):
    page = http.page("/").text
    loaded = re.findall(r'(?:src|href)="([^"#]+)"', page)
    assets = [one for one in loaded if one.startswith("/assets/")]
    assert assets
    assert all(one.startswith("/") for one in loaded)
    for one in assets:
        response = http.get(one)
        assert response.status_code == 200
        again = http.get(one, headers={"if-none-match": response.headers["etag"]})
        assert again.status_code == 304
        if "/vendor/" in one:
            # The licences of what others wrote come with it.
            licence = re.sub(r"\.min\.\w+$", ".LICENSE.txt", one)
            assert http.get(licence).status_code == 200
    for wrong in ("/assets/secret.js", "/assets/vendor/..%2F..%2Fapi.py", "/assets/..%2Fapi.py"):
        assert http.get(wrong).status_code == 404


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/nothing", 404, "not-found"),
        ("/bandits/none/overview", 404, "not-found"),
        ("/bandits/b/nothing", 404, "not-found"),
        ("/bandits/b/decide", 405, "method-not-allowed"),
        ("/bandits/b/overview?span=1y", 400, "invalid-input"),
        ("/bandits/b/arms?solt=<b>", 400, "invalid-input"),
        ("/bandits/b/arms?first=<b>", 404, "not-found"),
    ],
)
def test_a_browser_at_a_wrong_address_gets_a_page_with_navigation(http, path, status, code):
    page, data = http.page(path), http.get(path)
    # A program gets JSON at the same address.
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

    def unchanged():
        tag = load().headers["etag"]
        same = load(tag)
        return tag if (same.status_code, same.content) == (304, b"") else ""

    assert load().headers["content-type"].startswith("text/html")
    # The bandit still learns from what it was filled with, which changes the page.
    tag = wait_until(unchanged)
    http.post("/bandits/b/pause")
    changed = load(tag)
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag
    http.post("/bandits/b/resume")


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/bandits/b", "/bandits/b/overview"),
        ("/bandits/b%3Fspan=day", "/bandits/b%3Fspan%3Dday/overview"),
    ],
)
def test_a_browser_at_the_address_of_a_bandit_is_sent_to_its_overview(http, path, location):
    response = http.page(path)
    assert (response.status_code, response.headers["location"]) == (307, location)


def addresses(page, path):
    """The addresses with a query to which a page leads, by links and by forms."""
    for link in re.findall(r'(?:href|hx-get)="([^"]*\?[^"]*)"', page):
        yield urljoin(path, html.unescape(link))
    for form in re.findall(r'<form[^>]*method="get".*?</form>', page, re.DOTALL):
        names = re.findall(r'<(?:input|button)[^>]* name="(\w+)"', form)
        chosen = {name: FILLED for name in names if name != "slot"}
        for name, options in re.findall(r'<select[^>]* name="(\w+)">(.*?)</select>', form):
            values = re.findall(r'value="([^"]*)"', options)
            chosen[name] = html.unescape(values[0 if name == "first" else -1])
        query = "&".join(f"{name}={value.replace('&', '%26')}" for name, value in chosen.items())
        yield urljoin(path, f"?{query}")


def test_every_link_and_form_with_a_query_is_answered(http):
    waiting, seen = [*SHARED, *OF_BANDIT], set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        page = http.page(path)
        assert page.status_code == 200, (path, page.text)
        waiting += addresses(page.text, path)
    used = {}
    for path, query in ((one.path, one.query) for one in map(urlsplit, seen)):
        given = dict(parse_qsl(query, keep_blank_values=True))
        used.setdefault(path, set()).update(given)
    assert {path: names for path, names in used.items() if names} == EXPECTED


def fields_of(page):
    """The text in every field of the form of settings, by name; None for a list of arms."""
    form = re.search(r"<form[^>]*data-changes.*?</form>", page, re.DOTALL)[0]
    texts = {
        name: html.unescape(value)
        for name, value in re.findall(r'<input[^>]* name="([\w.]+)"[^>]* value="([^"]*)"', form)
    }
    return texts | dict.fromkeys(re.findall(r'<select[^>]* name="([\w.]+)"', form))


def test_every_setting_that_may_change_has_a_field_with_its_value(http):
    rails = {"holdout": 0.1, "baseline": "A", "minimum": 0.05}
    body = {"name": "form", "actions": ["A", "B"], "guard_rails": rails, "refit_rows": 70}
    made = http.post("/bandits", json={**body, "context": {"device": ["phone"]}}).json()
    fields = fields_of(http.page("/bandits/form/settings").text)
    assert (fields["refit_rows"], fields["reward_wait"]) == ("70", "3600")
    assert fields["guard_rails.holdout"] == "0.1"
    assert fields["guard_rails.baseline"] is None
    assert json.loads(fields["context"]) == {"device": ["phone"]}
    assert {name.partition(".")[0] for name in fields} >= set(made) & set(SETTING_TYPES) - {
        *FIXED,
        "status",
    }
    # What a page shows can be sent back, and changes nothing.
    sent = {}
    for name, text in fields.items():
        table, _, key = name.partition(".")
        if text is not None:
            known = None if text == "" else text
            value = json.loads(text) if re.match(r"[\d{[]", text) else known
            sent.setdefault(table, {}).update({key: value}) if key else sent.update({table: value})
    assert http.request("PATCH", "/bandits/form", json=sent).json() == made


def test_a_page_is_shown_while_the_server_opens_its_bandits(http):
    http.app.service._opening["slow"] = None
    try:
        page = http.page("/bandits/slow/overview")
    finally:
        del http.app.service._opening["slow"]
    assert page.status_code == 503
    # It loads itself again.
    assert 'hx-trigger="every 3s"' in page.text
