"""Every link and every form of the pages asks for what the server knows, and is answered."""

import html
import re
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest

from submax.live.declaring.declare import declare
from submax.live.store.memory_store import MemoryStore
from submax.web.server.pages.operations import page_operations

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PATHS = [one.path.format(name="b") for one in page_operations() if one.page is not None]
ARMS = [f"arm {number} & more" for number in range(101)]
"""More than one page of them, with characters that have a meaning in addresses."""
CONTEXT = {"a & b": ["x", "y"], "country?": ["fr", "de"]}
FILLED = "u%26v%3D1"
"""The text that is filled into forms, quoted as by a browser."""
EXPECTED = {
    "/bandits/b/overview": {"span"},
    "/bandits/b/arms": {"span", "slot", "page"},
    "/bandits/b/contexts": {"field", "slot"},
    "/bandits/b/decisions": {"id", "unit"},
}
"""The parameters that the pages themselves use, by address; all that are declared but one, the path
to which the page to sign in leads."""


@pytest.fixture(scope="module")
def http(shared_serving):
    """A bandit with two slots and two fields: pages have links to choose one of each."""
    store = MemoryStore()
    actions = {"first & second": ARMS, "other": ["A", "B"]}
    declare(store, "b", {"actions": actions, "context": CONTEXT, "reward_wait": 0})
    client = shared_serving(store, rate=1e9)
    request = {"context": {"a & b": "x", "country?": "fr"}, "unit": "u&v=1"}
    made = client.post("/bandits/b/decide-many", json={"requests": [request] * 3})
    assert made.status_code == 200, made.text
    return client


def addresses(page, path):
    """The addresses with a query to which a page leads, by links and by forms."""
    for link in re.findall(r'(?:href|hx-get)="([^"]*\?[^"]*)"', page):
        yield urljoin(path, html.unescape(link))
    for form in re.findall(r'<form[^>]*method="get".*?</form>', page, re.DOTALL):
        names = re.findall(r'<(?:input|select|button)[^>]* name="(\w+)"', form)
        yield urljoin(path, f"?{'&'.join(f'{name}={FILLED}' for name in names)}")


def test_every_link_and_form_with_a_query_is_answered(http):
    waiting, seen = list(PATHS), set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        page = http.get(path, headers=BROWSER)
        assert page.status_code == 200, (path, page.text)
        waiting += addresses(page.text, path)
    used = {}
    for path, query in ((one.path, one.query) for one in map(urlsplit, seen)):
        used.setdefault(path, set()).update(dict(parse_qsl(query, strict_parsing=bool(query))))
    assert {path: names for path, names in used.items() if names} == EXPECTED
