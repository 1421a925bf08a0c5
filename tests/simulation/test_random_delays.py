"""Delays that are drawn for every decision."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from refusals import raises_code

from submax import (
    Bernoulli,
    DriftingContextual,
    Geometric,
    Pareto,
    make_policy,
    simulate,
)
from submax.core.contracts.wrapper_policy import WrapperPolicy
from submax.simulation.random_delays.random_delay import NEVER
from submax.testing.rules.goodness_of_fit import goodness_of_fit


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


def run(policy, delay, **settings):
    given = {"observations": 60, "replicas": 4, "points": None, **settings}
    return simulate(Bernoulli(3), policy, delay=delay, **given)


def test_without_a_delay_it_is_the_simulation_of_single_decisions(seed):
    for name in ("thompson-1-1", "rcp-submax", "ucb1-pending"):
        policy = make_policy(name)
        plain = run(policy, Geometric(0.0), seed=seed)
        expected = simulate(
            Bernoulli(3), policy, observations=60, replicas=4, seed=seed, points=None
        )
        assert np.array_equal(plain.actions, expected.actions)


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
    with raises_code("invalid-input"):
        run(make_policy("random"), Geometric(1.0, means=(0.0, 1.0)))


@pytest.mark.parametrize("delay", [Geometric(1.0, missing=1.0), Pareto(1.0, missing=1.0)])
def test_rewards_that_are_missing_for_ever_are_never_learned(delay, seed):
    policy = Noted(make_policy("thompson-1-1"))
    run(policy, delay, seed=seed)
    assert policy.back == []
    waits = delay.waits(np.zeros(10, dtype=np.int64), np.random.default_rng(seed))
    assert (waits == NEVER).all()


def test_worlds_that_drift_and_contexts_are_possible(seed):
    trace = simulate(
        DriftingContextual(3, 2),
        make_policy("random"),
        observations=20,
        replicas=2,
        delay=Geometric(3.0),
        seed=seed,
    )
    assert np.isfinite(trace.final_regret).all()


def test_wrong_delays_are_explained():
    with raises_code("invalid-input", "missing"):
        Geometric(missing=2)
    with raises_code("invalid-input"):
        Pareto(shape=1.0)
    with raises_code("invalid-input"):
        Pareto(means=())
