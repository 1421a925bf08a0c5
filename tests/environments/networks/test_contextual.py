import numpy as np
import pytest
from refusals import raises_code
from scipy import special

from submax.core.contracts.problem import Problem
from submax.core.numerics.standard_error import standard_error
from submax.core.rewards.binary import Binary
from submax.core.spaces.arms import Arms
from submax.environments.networks.combinatorial import Combinatorial
from submax.environments.networks.contextual import Contextual
from submax.environments.networks.truth_network import TruthNetwork

ENVIRONMENTS_OF_THE_PAPER = 50


def test_the_problem_is_arms_with_a_context():
    assert Contextual(3, 5).problem == Problem(Arms(3), 5, Binary())


def test_means_and_best_by_hand():
    environment = Contextual(arms=2, dimension=1, shift=-1.0, hidden=2)
    world = TruthNetwork(
        np.array([[[1.0, -1.0], [0.0, 2.0]]]), np.array([[[1.0, 1.0]]]), np.array([[1.0, -0.5]])
    )
    context = np.array([[[1.0], [1.0], [-1.0], [-1.0]]])
    action = np.array([[[0], [1], [0], [1]]])
    # The units are (2, 0), (1, 3), (0, 0) and (0, 1).
    mean = environment.mean_reward(world, context, action)
    assert np.allclose(mean, special.expit([[1.0, -1.5, -1.0, -1.5]]))
    best = environment.best_reward(world, context)
    assert np.allclose(best, special.expit([[1.0, 1.0, -1.0, -1.0]]))


def test_the_best_is_the_best_arm(seed):
    environment = Contextual()
    rng = np.random.default_rng(seed)
    world = environment.reset(6, rng)
    context = environment.contexts(world, 5, rng)
    means = [environment.mean_reward(world, context, np.full((6, 5, 1), arm)) for arm in range(4)]
    best = environment.best_reward(world, context)
    assert np.allclose(best, np.max(means, axis=0), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("shift", "reported"), [(0.0, 0.501), (-2.0, 0.123), (-4.0, 0.0185)])
def test_the_average_reward_is_that_of_the_paper(shift, reported):
    """Three standard errors of the difference, ours and that of the paper's 50 environments.

    Such a test fails by chance in one of 370 seeds: the seed is fixed.
    """
    rng = np.random.default_rng(0)
    environment = Contextual(shift=shift)
    world = environment.reset(1000, rng)
    context = environment.contexts(world, 100, rng)
    action = rng.integers(4, size=(1000, 100, 1))
    average = environment.mean_reward(world, context, action).mean(axis=1)
    error = np.hypot(standard_error(average), average.std() / np.sqrt(ENVIRONMENTS_OF_THE_PAPER))
    assert abs(average.mean() - reported) < 3 * error


@pytest.mark.parametrize("name", ["arms", "dimension", "hidden"])
@pytest.mark.parametrize("value", [0, -3, 2.0, True, "3", None])
def test_a_bad_number_is_refused(name, value):
    with raises_code("invalid-input"):
        Contextual(**{name: value})


def test_a_bad_shift_is_refused():
    with raises_code("invalid-input"):
        Contextual(shift=float("nan"))


@pytest.mark.parametrize("environment", [Contextual(), Combinatorial((2, 3, 4))], ids=repr)
def test_every_replica_has_a_truth_of_its_own(environment, seed):
    world = environment.reset(3, np.random.default_rng(seed))
    for weights in world:
        assert len(np.unique(weights.reshape(3, -1), axis=0)) == 3
