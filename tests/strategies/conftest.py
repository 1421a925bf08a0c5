from fractions import Fraction

import numpy as np
import pytest
from hypothesis import strategies as st

from submax import Table

LEVELS = np.array([0.0, 1.0])


@pytest.fixture(scope="session")
def small_table():
    """A 2x3 table: p₁ − p₀ is (−0.4, 0.1, 0.3)."""
    return Table(
        probabilities=np.array([[0.6, 0.3, 0.1], [0.2, 0.4, 0.4]]),
        levels=LEVELS,
        prior=np.array([0.9, 0.1]),
        values=np.array([0.1, 0.2]),
    )


def _table_from_counts(counts):
    rows = np.array([[float(Fraction(c, sum(row))) for c in row] for row in counts])
    return Table(rows, LEVELS, np.array([0.75, 0.25]), np.array([0.1, 0.2]))


def _table_from_joint(shares, values):
    logging = np.array(shares) / sum(shares)
    value = np.array(values) / 100
    mean = logging @ value
    rows = np.stack([logging * (1 - value) / (1 - mean), logging * value / mean])
    prior = np.array([1 - mean, mean])
    return Table(rows, LEVELS, prior, rows @ value), value


@pytest.fixture(scope="session")
def tables():
    """Two rows of raw counts, each with at least one, normalized."""
    row = st.lists(st.integers(0, 20), min_size=4, max_size=4).filter(any)
    return st.tuples(row, row).map(_table_from_counts)


@pytest.fixture(scope="session")
def joint_tables():
    """Tables of a logging policy and values v, as (table, v)."""
    shares = st.lists(st.integers(1, 20), min_size=5, max_size=5)
    values = st.lists(st.integers(1, 99), min_size=5, max_size=5)
    return st.builds(_table_from_joint, shares, values)
