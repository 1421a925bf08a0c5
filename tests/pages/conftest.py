import numpy as np
import pytest
from in_browser import browser  # noqa: F401 - pytest finds fixtures by their names here
from in_process import shared_serving  # noqa: F401 - pytest finds fixtures by their names here
from server_process import start_server  # noqa: F401 - pytest finds fixtures by their names here
from stored import clock, closed_stores, opened, store  # noqa: F401 - pytest finds fixtures by their names here

from submax.bandit.store import open_store


@pytest.fixture
def rng(seed):
    # Other numbers than the bandit's, which are those of the seed alone.
    return np.random.default_rng([seed, 1])


@pytest.fixture(scope="module")
def served(shared_serving, tmp_path_factory):  # noqa: F811 - pytest passes what the fixture gives
    """Serves a new store, which ``fill`` declares bandits in."""

    def served(fill):
        shop = open_store(tmp_path_factory.mktemp("pages") / "shop.db")
        fill(shop)
        return shared_serving(shop)

    return served
