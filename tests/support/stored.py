"""Stores for tests that need no path, bandits in them, and fixtures that open both."""

import itertools
import time

import numpy as np
import pytest

from submax.bandit.declaring import read_bandit
from submax.bandit.durable import open_bandit
from submax.bandit.export import DecisionTables
from submax.bandit.row_texts import read_choices
from submax.bandit.store import open_store
from submax.testing import ManualClock

OPENED = []
"""Stores of the current test, which a fixture closes."""


def new_store(clock=time.time):
    """Return a store in a folder that is deleted when the test is over."""
    OPENED.append(open_store(":memory:", clock=clock))
    return OPENED[-1]


def probabilities(bandit, **request):
    """Decide, and return what it was drawn from by action, as stored: six digits of each."""
    decision = bandit.decide(**request)
    ((eligible, numbers),) = bandit.store.select(
        "select eligible, probabilities from decision where id = :id", id=decision.id
    )
    indices, numbers = read_choices(bandit.menu, eligible, numbers)
    names = [bandit.menu.action(list(row)) for row in itertools.product(*indices)]
    found = dict(zip(map(named, names), numbers, strict=True))
    assert sum(found.values()) == pytest.approx(1.0, rel=1e-5)
    assert decision.propensity == pytest.approx(found[named(decision.action)], rel=1e-5)
    return found


def named(action):
    """An action as the key of a dictionary."""
    return action if isinstance(action, str) else tuple(action.values())


def exported(bandit):
    """Return the rows of an export, as tables."""
    declared = read_bandit(bandit.store, bandit.name)
    return [row for table in DecisionTables(bandit.store, declared) for row in table.to_pylist()]


def fitted(bandit):
    """Fit a version, and return it."""
    assert bandit.refit().learned
    return bandit.versions()[-1]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(clock):
    """A store for tests that need no path."""
    return new_store(clock)


@pytest.fixture
def opened(store, clock, seed):
    """Opens a bandit in the store or another place; all are closed when the test is over."""
    bandits = []

    def opened(place=store, **others):
        options = {"name": "page", "background": False, "clock": clock}
        options["rng"] = np.random.default_rng(seed)
        declared = {"actions": ["A", "B", "C"], "policy": "thompson-1-1", "reward_wait": 10.0}
        bandits.append(open_bandit(place, **{**options, **declared, **others}))
        return bandits[-1]

    yield opened
    for bandit in bandits:
        bandit.close()


@pytest.fixture(autouse=True)
def closed_stores():
    yield
    while OPENED:
        OPENED.pop().close()
