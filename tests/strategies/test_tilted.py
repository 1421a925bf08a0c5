import numpy as np
import pytest
from scipy.optimize import minimize

from submax.core.conditioning.table import Table
from submax.strategies.optimistic import Optimistic
from submax.strategies.target import Target
from submax.strategies.tilted import Tilted


@pytest.fixture
def table(seed):
    rng = np.random.default_rng(seed)
    return Table(
        probabilities=rng.dirichlet(np.ones(5), size=4),
        levels=np.sort(rng.normal(size=4)),
        prior=rng.dirichlet(np.ones(4)),
        values=np.full(4, np.nan),
    )


def test_it_is_the_nearest_distribution_with_its_mean(table):
    """No change that keeps sum and mean lowers the divergence: it is a minimum, and convex."""
    weights = Tilted(0.7).weights(table)
    limits = [
        {"type": "eq", "fun": lambda w: w.sum() - 1},
        {"type": "eq", "fun": lambda w: (w - weights) @ table.levels},
    ]
    best = minimize(
        lambda w: float(np.sum(w * np.log(np.maximum(w, 1e-12) / table.prior))),
        np.full(4, 0.25),
        bounds=[(1e-12, 1)] * 4,
        constraints=limits,
    )
    divergence = float(np.sum(weights * np.log(weights / table.prior)))
    assert divergence <= best.fun + 1e-6
    assert weights.sum() == pytest.approx(1)


def test_its_ends_are_the_optimistic_and_the_logging_policy(table):
    for temperature, same in ((1e-6, Optimistic()), (1e9, Target("observed"))):
        found = Tilted(temperature).probabilities(table)
        np.testing.assert_allclose(found, same.probabilities(table), atol=1e-6)


def test_a_level_that_was_never_observed_has_no_weight(table):
    unseen = table._replace(prior=np.array([0.5, 0.3, 0.2, 0.0]))
    assert Tilted(0.01).weights(unseen)[3] == 0
    assert np.isfinite(Tilted(1e-9).weights(unseen)).all()


def test_the_unit_of_rewards_does_not_matter(table):
    larger = table._replace(levels=1000 * table.levels + 5)
    np.testing.assert_allclose(Tilted(0.3).weights(larger), Tilted(0.3).weights(table))
