"""The truth of a drifting environment depends on the seed, not on the policy or the delay."""

from dataclasses import asdict

import numpy as np
import pytest

from submax.environments.changing import DriftingBernoulli
from submax.environments.contextual import DriftingContextual
from submax.policies import make_policy
from submax.simulation.delays import BatchedRewards, Lag
from submax.simulation.simulate import simulate

DECISIONS, REPLICAS = 60, 3
DELAYS = (BatchedRewards(1), BatchedRewards(1000), BatchedRewards(7), Lag(0), Lag(5))


def met(inner, policy, delay, seed):
    """The truth at every decision and all contexts, noted when the best reward is asked for."""
    states, contexts, kind = [], [], type(inner)

    def noted(self, world, context):
        states.append(np.concatenate([part.ravel() for part in world]))
        contexts.append(context.copy())
        return kind.best_reward(self, world, context)

    watched = type("Watched", (kind,), {"best_reward": noted})(**asdict(inner))
    settings = {"observations": DECISIONS, "replicas": REPLICAS, "seed": seed, "points": None}
    simulate(watched, make_policy(policy), delay=delay, **settings)
    return np.stack(states), np.concatenate(contexts, axis=1)


@pytest.mark.filterwarnings("ignore::submax.ContextIgnoredWarning")
@pytest.mark.parametrize(
    "inner", [DriftingBernoulli(4, memory=50.0), DriftingContextual(3, 2, hidden=4, memory=50.0)]
)
def test_states_and_contexts_are_those_of_the_seed_for_every_policy_and_delay(inner, seed):
    states, contexts = met(inner, "random", BatchedRewards(1), seed)
    assert len(states) == DECISIONS
    assert len(np.unique(states, axis=0)) == DECISIONS, "the truth moves with every decision"
    for delay in DELAYS:
        again, contexts_again = met(inner, "ucb1", delay, seed)
        assert np.array_equal(again, states)
        assert np.array_equal(contexts_again, contexts)
