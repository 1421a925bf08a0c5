"""The truth of a drifting environment depends on the seed, not on the policy or the delay."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from submax.core.contracts.environment import Environment
from submax.environments.changing.drifting_bernoulli import DriftingBernoulli
from submax.environments.networks.drifting_contextual import DriftingContextual
from submax.policies import make_policy
from submax.simulation.batch_flush import BatchFlush
from submax.simulation.lag import Lag
from submax.simulation.simulate import simulate

DECISIONS, REPLICAS = 60, 3
DELAYS = (BatchFlush(1), BatchFlush(1000), BatchFlush(7), Lag(0), Lag(5))


@dataclass(frozen=True)
class Observed(Environment):
    """Another environment, with the best reward of every decision and the contexts written down."""

    inner: Environment
    states: list = field(default_factory=list)
    contexts_met: list = field(default_factory=list)

    @property
    def problem(self):
        return self.inner.problem

    def reset(self, replicas, rng):
        return self.inner.reset(replicas, rng)

    def contexts(self, world, count, rng):
        return self.inner.contexts(world, count, rng)

    def mean_reward(self, world, context, action):
        return self.inner.mean_reward(world, context, action)

    def reward(self, world, context, action, rng):
        return self.inner.reward(world, context, action, rng)

    def best_reward(self, world, context):
        self.states.append(np.concatenate([part.ravel() for part in world]))
        self.contexts_met.append(context.copy())
        return self.inner.best_reward(world, context)

    def advance(self, world, count, rng):
        return self.inner.advance(world, count, rng)

    @classmethod
    def examples(cls):
        yield cls(DriftingBernoulli(2))


def met(inner, policy, delay, seed):
    environment = Observed(inner)
    simulate(
        environment,
        make_policy(policy),
        observations=DECISIONS,
        replicas=REPLICAS,
        delay=delay,
        seed=seed,
        points=None,
    )
    return np.stack(environment.states), np.concatenate(environment.contexts_met, axis=1)


@pytest.mark.filterwarnings("ignore::submax.ContextIgnoredWarning")
@pytest.mark.parametrize(
    "inner", [DriftingBernoulli(4, memory=50.0), DriftingContextual(3, 2, hidden=4, memory=50.0)]
)
def test_states_and_contexts_are_those_of_the_seed_for_every_policy_and_delay(inner, seed):
    states, contexts = met(inner, "random", BatchFlush(1), seed)
    assert len(states) == DECISIONS
    assert len(np.unique(states, axis=0)) == DECISIONS, "the truth moves with every decision"
    for delay in DELAYS:
        again, contexts_again = met(inner, "ucb1", delay, seed)
        assert np.array_equal(again, states)
        assert np.array_equal(contexts_again, contexts)


def test_a_policy_that_does_not_learn_has_the_same_rewards_under_every_delay(seed):
    """Uniform draws are the same in blocks and one by one for one replica."""
    inner = DriftingBernoulli(4, memory=50.0)
    traces = [
        simulate(
            inner,
            make_policy("random"),
            observations=DECISIONS,
            replicas=1,
            delay=delay,
            seed=seed,
            points=None,
        )
        for delay in DELAYS
    ]
    for trace in traces[1:]:
        assert np.array_equal(trace.rewards, traces[0].rewards)
        assert np.allclose(trace.accumulated_regret, traces[0].accumulated_regret, atol=1e-12)


def test_the_truth_moves_as_far_in_a_batch_as_in_single_decisions(seed):
    """The correlation of the path after n decisions is exp(−n / memory), whatever the delay."""
    memory, replicas = 40.0, 2000
    environment = Observed(DriftingBernoulli(1, memory=memory))
    simulate(
        environment,
        make_policy("random"),
        observations=41,
        replicas=replicas,
        delay=BatchFlush(1000),
        seed=seed,
    )
    # Both parts of a world are flattened; the first is the path.
    first, last = (environment.states[place][:replicas] for place in (0, 40))
    found = np.corrcoef(first, last)[0, 1]
    expected = np.exp(-40 / memory)
    # Fisher's transformation of a correlation has the standard error 1 / √(n − 3).
    distance = abs(np.arctanh(found) - np.arctanh(expected))
    assert distance < 5 / np.sqrt(replicas - 3)
