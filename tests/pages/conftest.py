import numpy as np
import pytest
from in_browser import browser  # noqa: F401 - fixture
from in_process import shared_serving  # noqa: F401 - fixtures
from server_process import start_server  # noqa: F401 - fixtures
from stored import clock, closed_stores, opened, store  # noqa: F401 - fixtures

from submax.bandit.store import open_store


@pytest.fixture
def rng(seed):
    # Other numbers than the bandit's, which are those of the seed alone.
    return np.random.default_rng([seed, 1])


@pytest.fixture(scope="module")
def served(shared_serving, tmp_path_factory):  # noqa: F811 - the fixture
    """Serves a new store, which ``fill`` declares bandits in."""

    def served(fill):
        shop = open_store(tmp_path_factory.mktemp("pages") / "shop.db")
        fill(shop)
        return shared_serving(shop)

    return served
