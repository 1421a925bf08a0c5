"""Who regrets less: what the paper reports, and that conditioning on rewards beats chance anywhere.

The sizes leave no doubt: differences of many standard errors.
"""

import itertools

import numpy as np
import pytest

from submax.core.conditioning import Table
from submax.core.errors import counted_fallbacks
from submax.environments.arms import Bernoulli, Gaussian, Poisson, Ratings
from submax.environments.changing import DriftingBernoulli
from submax.environments.contextual import Combinatorial
from submax.estimators import CVAE, Counting
from submax.models.memory import Memory
from submax.models.training_settings import Training
from submax.policies import Random, RewardConditioned
from submax.research.beyond.designs import Designs
from submax.research.beyond.real_valued import Gridded, Pricing, SmoothReward
from submax.simulation.delays import BatchedRewards
from submax.simulation.simulate import simulate
from submax.strategies.weighted import Advantage, Optimistic, Optimized, SubMax, Target

# Counting does not look at contexts, which is what is tested.
pytestmark = pytest.mark.filterwarnings("ignore::submax.ContextIgnoredWarning")
CLEAR = 5.0
"""Standard errors: one false alarm in three million comparisons."""
MARGIN = 2.0
"""Standard errors; the sizes are such that five and more are found, whatever the seed."""
FIRST, SECOND = np.divmod(np.arange(12), 4)
NETWORK = CVAE(hidden=16, training=Training(steps=100, batch=64, learning_rate=0.01))


def standard_errors(difference):
    return difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference)))


def regrets(environment, policies, seed, *, batch, **size):
    """The final regret of each policy, ``[R]``, in the same worlds."""
    settings = {"delay": BatchedRewards(batch), "seed": seed, "points": 1, **size}
    # A decision that fell back is a decision like others here.
    with counted_fallbacks():
        return [simulate(environment, policy, **settings).final_regret for policy in policies]


def ahead(environment, worse, better, seed, **size):
    """By how many standard errors of the paired difference one regrets more than the other."""
    left, right = regrets(environment, [worse, better], seed, **size)
    return standard_errors(left - right)


def test_submax_regrets_less_than_optimized_less_than_optimistic_less_than_random(seed):
    strategies = (SubMax(), Optimized(), Optimistic())
    policies = [*(RewardConditioned(Counting(1.0), one) for one in strategies), Random()]
    size = {"observations": 3000, "replicas": 100, "batch": 100}
    found = regrets(Bernoulli(50, 1.0, 9.0), policies, seed, **size)
    for better, worse in itertools.pairwise(found):
        assert standard_errors(worse - better) > CLEAR


def test_the_expected_rewards_of_the_illustration_are_in_order(seed):
    value = np.random.default_rng(seed).beta(1, 9, size=(400, 20))
    mean = value.mean(axis=1, keepdims=True)
    rows = np.stack([(1 - value) / (1 - mean), value / mean], axis=1) / 20
    table = Table(
        probabilities=rows,
        levels=np.array([0.0, 1.0]),
        prior=np.concatenate([1 - mean, mean], axis=1),
        values=np.einsum("rla,ra->rl", rows, value),
    )
    earned = {
        strategy: np.sum(strategy.probabilities(table) * value, axis=1)
        for strategy in (Target((1.0, 0.0)), Optimistic(), Optimized(), SubMax())
    }
    negative, optimistic, optimized, submax = earned.values()
    assert np.all(negative < mean[:, 0])
    assert np.all(mean[:, 0] < optimistic)
    assert np.all(optimistic <= optimized + 1e-12)
    assert standard_errors(submax - optimized) > CLEAR


@pytest.mark.parametrize("arms", [2, 10])
def test_the_regret_of_random_choice_has_a_closed_form(arms, seed):
    size = {"observations": 200, "replicas": 500, "batch": 200}
    (regret,) = regrets(Bernoulli(arms), [Random()], seed, **size)
    # The largest of K uniform numbers is K / (K + 1) on average, each of them 1 / 2.
    expected = 200 * (arms / (arms + 1) - 0.5)
    assert abs(standard_errors(regret - expected)) < CLEAR


LISTED = [
    *(kind(10) for kind in (Bernoulli, Ratings, Gaussian, Poisson)),
    Designs.of({"first": FIRST, "second": SECOND, "value": np.arange(12.0)}, noise=1.0),
    Combinatorial((2, 3, 4), dimension=3, shift=0.0),
]


@pytest.mark.parametrize("environment", LISTED, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("strategy", [SubMax(), Advantage()], ids=repr)
def test_counting_beats_chance_on_every_scale(environment, strategy, seed):
    policy = RewardConditioned(Counting(), strategy)
    size = {"observations": 1000, "replicas": 20, "batch": 100}
    assert ahead(environment, Random(), policy, seed, **size) > MARGIN


REAL = [SmoothReward(), Pricing(), SmoothReward(sizes=(3, 2))]


@pytest.mark.parametrize("environment", REAL, ids=["box", "price", "mixed"])
def test_counting_cells_beats_chance_over_real_valued_actions(environment, seed):
    policy = Gridded(RewardConditioned())
    size = {"observations": 1500, "replicas": 40, "batch": 100}
    assert ahead(environment, Random(), policy, seed, **size) > MARGIN


@pytest.mark.soak
@pytest.mark.xdist_group("CVAE")
@pytest.mark.parametrize("environment", REAL, ids=["box", "price", "mixed"])
def test_networks_beat_chance_over_real_valued_actions(environment, seed):
    policy = RewardConditioned(NETWORK)
    size = {"observations": 1500, "replicas": 6, "batch": 500}
    assert ahead(environment, Random(), policy, seed, **size) > MARGIN


def test_all_five_ratings_are_better_than_the_lowest_and_the_highest(seed):
    two = RewardConditioned(Counting(), SubMax(), levels=2)
    all_of_them = RewardConditioned(Counting(), Advantage())
    size = {"observations": 2000, "replicas": 300, "batch": 500}
    assert ahead(Ratings(20), two, all_of_them, seed, **size) > MARGIN


def test_a_window_is_better_than_everything_where_chances_drift(seed):
    environment = DriftingBernoulli(10, memory=500.0)
    window = RewardConditioned(Counting(memory=Memory(window=250)))
    size = {"observations": 4000, "replicas": 40, "batch": 100}
    assert ahead(environment, RewardConditioned(), window, seed, **size) > MARGIN
