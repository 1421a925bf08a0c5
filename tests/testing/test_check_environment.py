import numpy as np
import pytest

from submax import Bernoulli
from submax.core.environment import Outcome
from submax.environments import Contextual
from submax.testing import check_environment

UNSEEDED = np.random.default_rng(0)


class PaysTenPercentMore(Bernoulli):
    def reward(self, world, context, action, rng):
        return Bernoulli.reward(self, world + 0.1, context, action, rng)


class MeansAboveOne(Bernoulli):
    def mean_reward(self, world, context, action):
        return Bernoulli.mean_reward(self, world, context, action) + 1.0


class PaysTwo(Bernoulli):
    def reward(self, world, context, action, rng):
        return 2 * Bernoulli.reward(self, world, context, action, rng)


class OtherMeanAtOnce(Bernoulli):
    def outcome(self, world, context, action, rng):
        reward, mean = Bernoulli.outcome(self, world, context, action, rng)
        return Outcome(reward, mean / 2)


class BestIsAverage(Bernoulli):
    def best_reward(self, world, context):
        return np.broadcast_to(world.mean(axis=-1)[:, None], context.shape[:2])


class BestIsOne(Bernoulli):
    def best_reward(self, world, context):
        return np.ones(context.shape[:2])


class MovesInSecret(Bernoulli):
    """Its success probabilities fall with every decision, and it says that they do not."""

    @property
    def drifts(self):
        return False

    def advance(self, world, count, rng):
        return world * 0.9**count


class OneWorldForAll(Bernoulli):
    def reset(self, replicas, rng):
        return np.repeat(Bernoulli.reset(self, 1, rng), replicas, axis=0)


class OneNetworkForAll(Contextual):
    def reset(self, replicas, rng):
        world = Contextual.reset(self, 1, rng)
        return type(world)(*(np.repeat(part, replicas, axis=0) for part in world))


class OneNetworkAndContextForAll(OneNetworkForAll):
    def contexts(self, world, count, rng):
        context = Contextual.contexts(self, world, count, rng)
        return np.repeat(context[:1], len(context), axis=0)


class WithoutSeed(Bernoulli):
    def reset(self, replicas, rng):
        return Bernoulli.reset(self, replicas, UNSEEDED)


class WideContexts(Bernoulli):
    def contexts(self, world, count, rng):
        return np.zeros((len(world), count, 2))


class WholeRewards(Bernoulli):
    def reward(self, world, context, action, rng):
        return Bernoulli.reward(self, world, context, action, rng).astype(np.int64)


class OneColumnOfBest(Bernoulli):
    def best_reward(self, world, context):
        return world.max(axis=-1)[:, None]


@pytest.mark.parametrize(
    ("environment", "rule"),
    [
        (PaysTenPercentMore(3), "the average of 1000 rewards .*expected at most"),
        (MeansAboveOne(3), r"mean_reward must lie within .* of Binary\(\)"),
        (PaysTwo(3), r"rewards must be those of Binary\(\)"),
        (OtherMeanAtOnce(3), "outcome must be what reward and mean_reward give"),
        (BestIsAverage(3), "no action may be better than best_reward"),
        (MovesInSecret(3), r"does not drift, and its mean rewards change.*found 0"),
        (BestIsOne(3), "some action must earn best_reward"),
        (OneWorldForAll(3), "different replicas must not all meet the same"),
        (OneNetworkAndContextForAll(), "different replicas must not all meet the same"),
        (WithoutSeed(3), "the same seed must give the same world"),
        (WideContexts(3), "contexts must have shape"),
        (WholeRewards(3), "reward must be of type float64"),
        (OneColumnOfBest(3), r"best_reward must have shape \[R, n\] = "),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_broken_environment_is_found_out(environment, rule, seed):
    with pytest.raises(AssertionError, match=rule):
        check_environment(environment, seed)


def test_replicas_may_share_a_truth_when_their_contexts_differ(seed):
    check_environment(OneNetworkForAll(), seed)
