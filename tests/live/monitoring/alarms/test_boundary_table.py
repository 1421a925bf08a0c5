"""The table of boundaries never says less than the search for a single one, and hardly more."""

import numpy as np
import pytest

from submax.live.monitoring.alarms.boundary_table import (
    ENTRIES_PER_OCTAVE,
    LARGEST,
    SMALLEST,
    boundary_table,
)
from submax.sequential.mixture_boundary import mixture_boundary


@pytest.mark.parametrize("error", [0.05, 1e-3, 1e-7])
def test_entries_are_at_most_a_little_wider_than_the_boundary(error: float) -> None:
    variances = np.geomspace(SMALLEST, 1e9, 300)
    exact = np.array([mixture_boundary(one, error, 1.0, 50.0) for one in variances])
    ratio = boundary_table(error, 50.0)(variances) / exact
    # Between two entries the variance differs by a factor, and the boundary by less than that.
    assert (ratio >= 1 - 1e-8).all()
    assert (ratio <= 2 ** (1 / ENTRIES_PER_OCTAVE) * (1 + 1e-5)).all()


def test_outside_of_the_table_the_boundary_is_not_narrower() -> None:
    table = boundary_table(1e-3, 50.0)
    below, beyond = table(np.array([0.0, 10 * LARGEST]))
    assert below >= mixture_boundary(0.0, 1e-3, 1.0, 50.0)
    assert beyond >= table(np.array([LARGEST]))[0] * np.sqrt(10)
