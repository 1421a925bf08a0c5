"""When rewards come back: after a batch, after a lag, or after delays that are drawn."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises_code

from submax import (
    BatchedRewards,
    Bernoulli,
    Geometric,
    Lag,
    Pareto,
    make_policy,
    simulate,
)
from submax.core.policy import WrapperPolicy
from submax.testing.assertions import goodness_of_fit


def known(delay, observations):
    """How many rewards are back at each decision, and in the end."""
    found, back = [], 0
    for decide, receive in delay.schedule(observations):
        found += [back] * decide
        back += receive
    return found, back


@given(st.integers(1, 60), st.integers(1, 60))
def test_every_full_batch_comes_back_and_the_rest_never_does(observations, size):
    expected = [decision // size * size for decision in range(observations)]
    assert known(BatchedRewards(size), observations) == (expected, observations // size * size)


@given(st.integers(1, 60), st.integers(0, 60))
def test_every_reward_comes_back_after_that_many_further_decisions(observations, steps):
    expected = [max(decision - steps, 0) for decision in range(observations)]
    assert known(Lag(steps), observations) == (expected, max(observations - steps, 0))


@dataclass(frozen=True)
class Noted(WrapperPolicy):
    """Another policy, with the decisions and the weights that come back written down."""

    policy: object
    decided: list = field(default_factory=list)
    back: list = field(default_factory=list)

    def record(self, state, action=None, *, upcoming=None):
        self.decided.append(action[:, 0, 0])
        return self.policy.record(state, action)

    def update(self, state, feedback, rng):
        self.back.append((len(self.decided), feedback))
        return self.policy.update(state, feedback, rng)


def run(policy, delay=None, **settings):
    given = {"observations": 60, "replicas": 4, "points": None, **settings}
    delayed = {} if delay is None else {"delay": delay}
    return simulate(Bernoulli(3), policy, **delayed, **given)


@pytest.mark.parametrize("delay", [Geometric(0.0), Lag(0)], ids=repr)
@pytest.mark.parametrize("name", ["thompson-1-1", "rcp-submax", "ucb1-pending"])
def test_without_a_delay_it_is_the_simulation_of_single_decisions(delay, name, seed):
    policy = make_policy(name)
    found = run(policy, delay, seed=seed)
    assert np.array_equal(found.actions, run(policy, seed=seed).actions)


def test_every_reward_comes_back_once_and_after_its_decision(seed):
    policy = Noted(make_policy("random"))
    trace = run(policy, Geometric(5.0), seed=seed, observations=200)
    for now, feedback in policy.back:
        assert now <= 200
        assert set(np.unique(feedback.weight)) <= {0.0, 1.0}
        assert (feedback.weight.sum(axis=0) > 0).all()
    total = sum(feedback.weight.sum(axis=1) for _, feedback in policy.back)
    # A reward is still out at the end with the tail probability of a geometric distribution.
    assert (total <= 200).all()
    assert total.mean() > 150
    paid = sum((feedback.weight * feedback.reward).sum(axis=1) for _, feedback in policy.back)
    assert (paid <= trace.final_reward + 1e-9).all()


def test_geometric_delays_have_their_distribution(seed):
    rng = np.random.default_rng(seed)
    waits = Geometric(3.0).waits(np.zeros(20000, dtype=np.int64), rng)
    shares = 0.25 * 0.75 ** np.arange(30)
    table = np.append(shares, 1 - shares.sum())
    assert goodness_of_fit(np.minimum(waits, 30), table) > 1e-9


def test_heavy_tails_have_their_distribution(seed):
    """P(delay ≥ d) = (1 + d / s)^−α for whole numbers d."""
    rng, delay = np.random.default_rng(seed), Pareto(10.0, shape=1.5)
    waits = delay.waits(np.zeros(20000, dtype=np.int64), rng)
    above = (1 + np.arange(101) / 5.0) ** -1.5
    table = np.append(above[:-1] - above[1:], above[-1])
    assert goodness_of_fit(np.minimum(waits, 100), table) > 1e-9


def test_delays_depend_on_the_action(seed):
    rng = np.random.default_rng(seed)
    index = np.repeat([0, 1], 5000)
    waits = Geometric(1.0, means=(0.0, 20.0)).waits(index, rng)
    assert (waits[:5000] == 0).all()
    # The variance of a geometric delay with mean m is m (m + 1).
    assert abs(waits[5000:].mean() - 20.0) < 5 * np.sqrt(20 * 21 / 5000)
    with raises_code("invalid-input", "means"):
        run(make_policy("random"), Geometric(1.0, means=(0.0, 1.0)))


@pytest.mark.parametrize("delay", [Geometric(1.0, missing=1.0), Pareto(1.0, missing=1.0)])
def test_rewards_that_are_missing_for_ever_are_never_learned(delay, seed):
    policy = Noted(make_policy("thompson-1-1"))
    run(policy, delay, seed=seed)
    assert policy.back == []


@pytest.mark.parametrize(
    ("kind", "given", "parameter"),
    [
        (BatchedRewards, {"size": 0}, "size"),
        (BatchedRewards, {"size": 1.0}, "size"),
        (Lag, {"steps": -1}, "steps"),
        (Geometric, {"missing": 2}, "missing"),
        (Pareto, {"shape": 1.0}, "shape"),
        (Pareto, {"means": ()}, "means"),
    ],
)
def test_what_is_no_delay_is_refused(kind, given, parameter):
    with raises_code("invalid-input", parameter):
        kind(**given)
