"""Every link and form of the pages is answered, with a bounded amount of work."""

import html
import re
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
from waiting import wait_until

from submax.live.declaring.declare import declare
from submax.live.store.memory_store import MemoryStore
from submax.web.server.pages.operations import page_operations

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PATHS = [one.path.format(name="b") for one in page_operations() if one.page is not None]
ARMS, DECISIONS = 300, 4000
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

pytestmark = pytest.mark.filterwarnings("ignore::submax.core.errors.ContextIgnoredWarning")


class CountingStore(MemoryStore):
    """A store that counts the events that were read."""

    rows = 0

    def read(self, *arguments, **options):
        found = super().read(*arguments, **options)
        self.rows += len(found)
        return found

    def read_columns(self, *arguments, **options):
        found = super().read_columns(*arguments, **options)
        self.rows += len(found)
        return found


@pytest.fixture(scope="module")
def store():
    return CountingStore()


@pytest.fixture(scope="module")
def http(shared_serving, store):
    """A bandit with two slots and two fields, of whose arms there are several pages.

    The names have characters that have a meaning in addresses.
    """
    arms = [f"arm {number} & more" for number in range(ARMS)]
    actions = {"first & second": arms, "other": ["A", "B"]}
    fields = {"a & b": ["x", "y"], "country?": ["fr", "de"]}
    declare(
        store, "b", {"actions": actions, "context": fields, "reward_wait": 0, "policy": "random"}
    )
    http = shared_serving(store, rate=1e9)
    request = {"context": {"a & b": "x", "country?": "fr"}, "unit": "u&v=1"}
    for _ in range(DECISIONS // 1000):
        made = http.post("/bandits/b/decide-many", json={"requests": [request] * 1000})
        assert made.status_code == 200, made.text
    # Whoever leads has read the whole log by then.
    wait_until(lambda: http.get("/bandits/b").json()["counts"].get("decisions") == DECISIONS)
    return http


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


def test_pages_do_not_read_the_log_again(http, store):
    for path in PATHS:
        before = store.rows
        page = http.get(path, headers=BROWSER)
        assert page.status_code == 200
        # The newest decisions are looked for in the newest 256 events, and settings are followed.
        assert store.rows - before < 600, path
        assert len(page.content) < 400_000, path


def test_arms_are_shown_by_pages(http):
    pages = [http.get(f"/bandits/b/arms?page={page}").json()["arms"] for page in (1, 2, 3, 4)]
    assert [len(arms) for arms in pages] == [100, 100, 100, 0]
    assert len({one["choice"] for arms in pages for one in arms}) == ARMS
    assert http.get("/bandits/b/arms?page=0").status_code == 400
