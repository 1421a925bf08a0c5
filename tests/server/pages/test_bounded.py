"""Pages do a bounded amount of work, however long the log and however many arms there are."""

import pytest
from waiting import wait_until

from submax.live.declaring.declare import declare
from submax.live.store.memory_store import MemoryStore
from submax.web.server.pages.operations import page_operations

PATHS = [one.path for one in page_operations() if "{name}" in one.path]
ARMS, DECISIONS = 300, 4000
BROWSER = {"accept": "text/html"}

pytestmark = pytest.mark.filterwarnings(
    "ignore::submax.core.contracts.context_ignored_warning.ContextIgnoredWarning"
)


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
def bandit(shared_serving, store):
    actions = [f"arm-{number}" for number in range(ARMS)]
    declared = {"actions": actions, "reward_wait": 0, "policy": "random"}
    declare(store, "b", {**declared, "context": {"age": "number"}})
    http = shared_serving(store)
    requests = {"requests": [{"context": {"age": 1.0}}] * 1000}
    for _ in range(DECISIONS // 1000):
        http.post("/bandits/b/decide-many", json=requests)
    # Whoever leads has read the whole log by then.
    wait_until(lambda: http.get("/bandits/b").json()["counts"].get("decisions") == DECISIONS)
    return http


def test_pages_do_not_read_the_log_again(bandit, store):
    for path in PATHS:
        before = store.rows
        page = bandit.get(path.format(name="b"), headers=BROWSER)
        assert page.status_code == 200
        # The newest decisions are looked for in the newest 256 events, and settings are followed.
        assert store.rows - before < 600, path
        assert len(page.content) < 400_000, path


def test_arms_are_shown_by_pages(bandit):
    def arms(page):
        return bandit.get(f"/bandits/b/arms?page={page}").json()

    assert [len(arms(page)["arms"]) for page in (1, 2, 3, 4)] == [100, 100, 100, 0]
    names = {one["choice"] for page in (1, 2, 3) for one in arms(page)["arms"]}
    assert len(names) == ARMS
    assert bandit.get("/bandits/b/arms?page=0").status_code == 400
