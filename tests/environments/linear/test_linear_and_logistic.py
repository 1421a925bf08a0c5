import numpy as np
import pytest

from submax import DescribedArms, LinearContextual, LogisticContextual
from submax.simulation.experiment import cells, parse

TABLE = ((1.0, -2.0), (0.5, 3.0), (0.0, 0.25))


@pytest.mark.parametrize(
    ("environment", "link"),
    [
        (LinearContextual(3, 2, parameters=TABLE), lambda x: x),
        (LogisticContextual(3, 2, shift=-1.0, parameters=TABLE), lambda x: 1 / (1 + np.exp(1 - x))),
    ],
)
def test_means_are_the_equation_with_the_known_parameters(environment, link, seed):
    rng = np.random.default_rng(seed)
    world = environment.reset(2, rng)
    context = environment.contexts(world, 5, rng)
    best = np.full((2, 5), -np.inf)
    for arm, theta in enumerate(TABLE):
        action = np.full((2, 5, 1), arm)
        expected = link(context @ np.array(theta))
        np.testing.assert_allclose(environment.mean_reward(world, context, action), expected)
        best = np.maximum(best, expected)
    np.testing.assert_allclose(environment.best_reward(world, context), best)


def test_products_have_the_given_spread(seed):
    environment, rng = LinearContextual(1, 7, spread=3.0), np.random.default_rng(seed)
    world = environment.reset(20000, rng)
    mean = environment.mean_reward(
        world, environment.contexts(world, 1, rng), np.zeros((20000, 1, 1), dtype=np.int64)
    )
    # A product of normal vectors has a kurtosis of at most 9, so the variance's error is √(8 / n).
    assert abs(mean.var() / 9.0 - 1) < 5 * np.sqrt(8 / 20000)


def test_means_of_described_arms_are_linear_in_the_features_that_policies_get(seed):
    environment, rng = DescribedArms(12, 3), np.random.default_rng(seed)
    world = environment.reset(4, rng)
    features = np.array(environment.problem.action_features[0])
    assert features.shape == (12, 3)
    weights, *_ = np.linalg.lstsq(features, world.T, rcond=None)
    np.testing.assert_allclose(features @ weights, world.T, atol=1e-10)
    assert not np.array_equal(features, DescribedArms(12, 3, features_seed=1).table())


def test_given_features_and_parameters_are_tables_in_toml():
    text = """
    observations = 10
    policies = ["random"]
    [environment]
    kind = "linear-contextual"
    arms = 2
    dimension = 2
    parameters = [[1, 0], [0, 1]]
    """
    (cell,) = cells(parse(text, "linear"))
    assert cell.labels["parameters"] == "1x0x0x1"
