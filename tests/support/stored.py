"""Stores for tests that need no path, and what is in them."""

import itertools
import time

from submax.bandit.declaring import audit_lines, read_bandit
from submax.bandit.export import DecisionTables
from submax.bandit.row_texts import read_choices
from submax.bandit.store import open_store
from submax.bandit.tables import DECISION_COLUMNS, REWARD_COLUMNS

OPENED = []
"""Stores of the current test, which a fixture closes."""


def new_store(clock=time.time):
    """Return a store in a folder that is deleted when the test is over."""
    OPENED.append(open_store(":memory:", clock=clock))
    return OPENED[-1]


def written(bandit):
    """Return all rows of decisions and of rewards, early ones too, as the store has them."""
    number = bandit.store.select("select n from bandit where name = :name", name=bandit.name)[0][0]
    return [
        row
        for table, columns in (
            ("decision", DECISION_COLUMNS),
            ("reward", REWARD_COLUMNS),
            ("early_reward", "id, key, value, parts, at"),
        )
        for row in bandit.store.select(
            f"select {columns} from {table} where bandit = :n order by n", n=number
        )
    ]


def audited(store, subject=None):
    """Return the audited changes, oldest first, as (action, subject, name)."""
    lines = reversed(audit_lines(store, subject=subject))
    return [(line.action, line.subject, line.name) for line in lines]


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


def learned_rewards(bandit):
    """Return the rewards of the decisions that have matured and are learned from."""
    return [row["reward"] for row in exported(bandit) if row["status"] == "learned"]


def fitted(bandit):
    """Fit a version, and return it."""
    assert bandit.refit().learned
    return bandit.versions()[-1]
