import numpy as np
import pytest
from waiting import wait_until


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture
def page_of(serving):
    """Let a bandit learn, serve its store, and read what its pages show, as data."""

    def page_of(bandit):
        bandit.refit()
        http = serving(bandit.store)

        def page(name, **asked):
            answer = http.get(f"/bandits/{bandit.name}/{name}", params=asked)
            assert answer.status_code == 200, answer.text
            return answer.json()

        # The server has read the log once it knows all decisions.
        decisions = bandit.counts().get("decisions", 0)
        wait_until(lambda: page("health")["counts"].get("decisions", 0) == decisions)
        page.http = http
        return page

    return page_of
