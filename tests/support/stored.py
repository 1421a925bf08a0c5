"""Stores for tests that need no path, and what is in them."""

import itertools
import time

from submax.bandit.declaring import read_bandit
from submax.bandit.export import DecisionTables
from submax.bandit.row_texts import read_choices
from submax.bandit.store import open_store

OPENED = []
"""Stores of the current test, which a fixture closes."""


def new_store(clock=time.time):
    """Return a store in a folder that is deleted when the test is over."""
    OPENED.append(open_store(":memory:", clock=clock))
    return OPENED[-1]


def drawn_from(bandit, identifier=None):
    """Return the probabilities that a decision was drawn from, by action; the last one's."""
    which = "order by n desc limit 1" if identifier is None else "and id = :id"
    ((eligible, probabilities),) = bandit.store.select(
        "select eligible, probabilities from decision "
        f"where bandit = (select n from bandit where name = :name) {which}",
        name=bandit.name,
        **({} if identifier is None else {"id": identifier}),
    )
    indices, numbers = read_choices(bandit.menu, eligible, probabilities)
    names = [bandit.menu.action(list(row)) for row in itertools.product(*indices)]
    names = [name if isinstance(name, str) else tuple(name.values()) for name in names]
    return dict(zip(names, numbers, strict=True))


def exported(bandit):
    """Return the rows of an export, as tables."""
    declared = read_bandit(bandit.store, bandit.name)
    return [row for table in DecisionTables(bandit.store, declared) for row in table.to_pylist()]


def fitted(bandit):
    """Fit a version, and return it."""
    assert bandit.refit().learned
    return bandit.versions()[-1]
