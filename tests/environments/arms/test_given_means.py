import numpy as np
import pytest
from refusals import raises_code

from submax import Bernoulli, Gaussian, HeavyTailed, make_policy, simulate
from submax.experiments.running.cells import cells
from submax.experiments.specification import parse

TOML = """
observations = 10
policies = ["random"]
[environment]
kind = "{kind}"
means = {means}
"""


@pytest.mark.parametrize("environment", [Bernoulli.of([0.9, 0.5]), Gaussian.of([0.9, 0.5], 0.0)])
def test_regret_is_the_distance_of_the_given_means(environment):
    trace = simulate(environment, make_policy("random"), observations=50, replicas=4, points=None)
    worse = (trace.actions[..., 0] == 1).cumsum(axis=1)
    np.testing.assert_allclose(trace.accumulated_regret, 0.4 * worse, atol=1e-12)
    assert environment.shared


def test_rewards_without_noise_are_the_given_means():
    environment = Gaussian.of([2.0, -1.0], noise=0.0)
    trace = simulate(environment, make_policy("random"), observations=30, replicas=3, points=None)
    assert set(np.unique(trace.rewards)) == {2.0, -1.0}


@pytest.mark.parametrize("kind", ["bernoulli", "gaussian", "heavy-tailed"])
def test_a_list_of_means_in_toml_is_one_configuration(kind):
    (cell,) = cells(parse(TOML.format(kind=kind, means="[0.9, 0.8, 0.7]"), "given"))
    assert cell.labels["arms"] == 3
    assert cell.labels["means"] == "0.9x0.8x0.7"
    several = cells(parse(TOML.format(kind=kind, means="[[0.9, 0.8], [0.5, 0.4]]"), "given"))
    assert [cell.labels["means"] for cell in several] == ["0.9x0.8", "0.5x0.4"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Bernoulli(), "give Bernoulli arms"),
        (lambda: Bernoulli(means=(1.2,)), "each of means must be a number between 0 and 1"),
        (lambda: Bernoulli(3, means=(0.1, 0.2)), "arms is 3 and there are 2 means"),
        (lambda: Gaussian(means=()), "means must be a tuple"),
        (lambda: HeavyTailed(2, degrees=1.0), "degrees must be above 1"),
    ],
)
def test_wrong_means_are_explained(make, words):
    with raises_code("invalid-input"):
        make()
