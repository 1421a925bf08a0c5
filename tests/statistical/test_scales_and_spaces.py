"""On every reward scale and in every action space, conditioning on rewards beats chance."""

import numpy as np
import pytest

from submax.core.errors import counted_fallbacks
from submax.environments.arms import Bernoulli, Gaussian, Poisson, Ratings
from submax.environments.changing import DriftingBernoulli
from submax.environments.contextual import Combinatorial
from submax.estimators.counting import Counting
from submax.estimators.network import CVAE
from submax.models.memory import Memory
from submax.models.training_settings import Training
from submax.policies.epsilon_greedy import Random
from submax.policies.reward_conditioned import RewardConditioned
from submax.research.beyond.designs import Designs
from submax.research.beyond.real_valued import Gridded, Pricing, SmoothReward
from submax.simulation.delays import BatchedRewards
from submax.simulation.simulate import simulate
from submax.strategies.weighted import Advantage, SubMax

# Counting does not look at contexts, which is what is tested.
pytestmark = pytest.mark.filterwarnings("ignore::submax.ContextIgnoredWarning")
MARGIN = 2.0
"""Standard errors; the sizes are such that five and more are found, whatever the seed."""
FIRST, SECOND = np.divmod(np.arange(12), 4)
NETWORK = CVAE(hidden=16, training=Training(steps=100, batch=64, learning_rate=0.01))


def standard_errors(environment, worse, better, seed, batch, **size):
    """By how many standard errors of the paired difference one regrets more than the other."""
    settings = {"delay": BatchedRewards(batch), "seed": seed, "points": 1, **size}
    # A decision that fell back is a decision like others here.
    with counted_fallbacks():
        traces = [simulate(environment, policy, **settings) for policy in (worse, better)]
    difference = traces[0].final_regret - traces[1].final_regret
    return difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference)))


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
    assert standard_errors(environment, Random(), policy, seed, **size) > MARGIN


REAL = [SmoothReward(), Pricing(), SmoothReward(sizes=(3, 2))]


@pytest.mark.parametrize("environment", REAL, ids=["box", "price", "mixed"])
def test_counting_cells_beats_chance_over_real_valued_actions(environment, seed):
    policy = Gridded(RewardConditioned())
    size = {"observations": 1500, "replicas": 40, "batch": 100}
    assert standard_errors(environment, Random(), policy, seed, **size) > MARGIN


@pytest.mark.soak
@pytest.mark.xdist_group("CVAE")
@pytest.mark.parametrize("environment", REAL, ids=["box", "price", "mixed"])
def test_networks_beat_chance_over_real_valued_actions(environment, seed):
    policy = RewardConditioned(NETWORK)
    size = {"observations": 1500, "replicas": 6, "batch": 500}
    assert standard_errors(environment, Random(), policy, seed, **size) > MARGIN


def test_all_five_ratings_are_better_than_the_lowest_and_the_highest(seed):
    two = RewardConditioned(Counting(), SubMax(), levels=2)
    all_of_them = RewardConditioned(Counting(), Advantage())
    size = {"observations": 2000, "replicas": 300, "batch": 500}
    assert standard_errors(Ratings(20), two, all_of_them, seed, **size) > MARGIN


def test_a_window_is_better_than_everything_where_chances_drift(seed):
    environment = DriftingBernoulli(10, memory=500.0)
    window = RewardConditioned(Counting(memory=Memory(window=250)))
    size = {"observations": 4000, "replicas": 40, "batch": 100}
    assert standard_errors(environment, RewardConditioned(), window, seed, **size) > MARGIN
