"""Policies with an index for each arm, compared with loops and root finders."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from submax import Arms, BatchedRewards, Bernoulli, Discrete, Feedback, Lag, Problem, simulate
from submax.policies import IMED, KLUCB, MOSS, UCB1, BayesUCB
from submax.policies.ucb import divergence, upper_bound
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit

means = st.floats(0, 1)


@given(mean=means, other=st.floats(1e-6, 1 - 1e-6))
def test_the_divergence_is_an_expectation(mean, other):
    expected = sum(
        p * np.log(p / q) for p, q in ((mean, other), (1 - mean, 1 - other)) if p > 1e-300
    )
    assert np.isclose(divergence(np.array(mean), np.array(other)), expected, atol=1e-12)


@given(mean=st.floats(0, 0.999), level=st.floats(0, 20))
def test_the_bound_is_where_the_divergence_reaches_the_level(mean, level):
    found = float(upper_bound(np.array(mean), np.array(level)))
    assert mean <= found <= 1

    def excess(q):
        return float(divergence(np.array(mean), np.array(q))) - level

    highest = 1 - 1e-15
    if excess(highest) <= 0:
        assert found >= highest - 1e-9
    elif level > 0:
        assert abs(found - optimize.brentq(excess, mean, highest, xtol=1e-15)) < 1e-7


ARMS, OBSERVATIONS, REPLICAS = 4, 84, 2
DELAYS = [BatchedRewards(1), BatchedRewards(12), Lag(20)]


def decisions_of(delay):
    """Yield the batch of each decision, the number of rewards before it, and the decision."""
    begin = known = 0
    for step in delay.schedule(OBSERVATIONS):
        batch = range(begin, begin + step.decide)
        yield from ((batch, known, decision) for decision in batch)
        begin, known = begin + step.decide, known + step.receive


def kl(p, q):
    def term(x, y):
        return 0.0 if x == 0 else math.inf if y == 0 else x * math.log(x / y)

    return term(p, q) + term(1 - p, 1 - q)


def slow_ucb1(policy, successes, received, pulls, total, best):
    return successes / max(received, 1) + math.sqrt(
        policy.exploration * math.log(max(total, 1)) / pulls
    )


def slow_kl_ucb(policy, successes, received, pulls, total, best):
    mean, logarithm = successes / max(received, 1), math.log(max(total, 1))
    level = (logarithm + policy.exploration * math.log(max(logarithm, 1))) / pulls
    if level == 0 or mean == 1:
        return mean
    highest = 1 - 1e-15
    if kl(mean, highest) <= level:
        return highest
    return optimize.brentq(lambda q: kl(mean, q) - level, mean, highest, xtol=1e-14)


def slow_bayes_ucb(policy, successes, received, pulls, total, best):
    a, b = policy.alpha + successes, policy.beta + received - successes
    pending = pulls - received
    mean = a / (a + b)
    shape = (a + pending * mean, b + pending * (1 - mean))
    return stats.beta.isf(1 / (total + 1), *shape)


def slow_moss(policy, successes, received, pulls, total, best):
    horizon = policy.horizon or total
    return successes / max(received, 1) + math.sqrt(
        max(math.log(max(horizon, 1e-300) / (ARMS * pulls)), 0) / pulls
    )


def slow_imed(policy, successes, received, pulls, total, best):
    return -(pulls * kl(successes / max(received, 1), best) + math.log(pulls))


SLOW = {
    UCB1: slow_ucb1,
    KLUCB: slow_kl_ucb,
    BayesUCB: slow_bayes_ucb,
    MOSS: slow_moss,
    IMED: slow_imed,
}
POLICIES = [
    *(UCB1(pending, exploration) for pending in (False, True) for exploration in (2.0, 0.0)),
    *(KLUCB(pending, exploration) for pending in (False, True) for exploration in (0.0, 3.0)),
    BayesUCB(1.0, 9.0),
    BayesUCB(0.5, 1.0, pending=True),
    *(MOSS(pending, horizon) for pending in (False, True) for horizon in (None, 84)),
    IMED(),
    IMED(pending=True),
]


@pytest.mark.parametrize("delay", DELAYS, ids=repr)
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_every_choice_has_the_highest_index_of_a_slow_loop(policy, delay, seed):
    settings = {"observations": OBSERVATIONS, "replicas": REPLICAS, "delay": delay, "seed": seed}
    trace = simulate(Bernoulli(ARMS), policy, points=None, **settings)
    slow = SLOW[type(policy)]
    for replica in range(REPLICAS):
        arms = trace.actions[replica, :, 0].tolist()
        rewards = trace.rewards[replica].tolist()
        for batch, known, decision in decisions_of(delay):
            counted = arms[:decision] if policy.pending else arms[:known]
            # Pending pulls count, and with them all decisions of the present batch but one.
            total = batch.stop - 1 if policy.pending else known
            received = [arms[:known].count(arm) for arm in range(ARMS)]
            successes = [
                sum(r for a, r in zip(arms[:known], rewards, strict=False) if a == arm)
                for arm in range(ARMS)
            ]
            best = max(s / max(n, 1) for s, n in zip(successes, received, strict=True))
            index = [
                slow(policy, successes[arm], received[arm], counted.count(arm), total, best)
                if counted.count(arm) or isinstance(policy, BayesUCB)
                else math.inf
                for arm in range(ARMS)
            ]
            taken = index[arms[decision]]
            assert taken == max(index) or taken >= max(index) - 1e-7


@pytest.mark.parametrize("policy", [one for one in POLICIES if not one.pending], ids=repr)
def test_ties_are_broken_at_random_for_every_decision(policy, seed):
    rng = np.random.default_rng(seed)
    state = policy.init(Problem(Arms(5)), 3, rng)
    decision = policy.act(state, np.zeros((3, 2000, 0)), rng)
    for replica in range(3):
        drawn = decision.action[replica, :, 0]
        assert goodness_of_fit(drawn, np.full(5, 0.2)) > SMALLEST_P_VALUE
    np.testing.assert_allclose(decision.log_prob, math.log(0.2))


@pytest.mark.parametrize("policy", [one for one in POLICIES if one.pending], ids=repr)
def test_with_pending_pulls_a_first_batch_goes_round_in_a_random_order(policy, seed):
    rng = np.random.default_rng(seed)
    state = policy.init(Problem(Arms(5)), 200, rng)
    decision = policy.act(state, np.zeros((200, 5, 0)), rng)
    assert np.array_equal(np.sort(decision.action[..., 0]), np.tile(np.arange(5), (200, 1)))
    assert goodness_of_fit(decision.action[:, 0, 0], np.full(5, 0.2)) > SMALLEST_P_VALUE
    assert np.all(decision.log_prob == 0)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_bounded_rewards_are_scaled(policy, seed):
    """Rewards of −1 and 3 decide like rewards of 0 and 1."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(3, size=(2, 40))
    paid = (rng.random((2, 40)) < 0.4).astype(float)
    listed = []
    for scale, reward in ((Discrete((-1.0, 3.0)), 4 * paid - 1), (Discrete((0.0, 1.0)), paid)):
        generator = np.random.default_rng(seed)
        state = policy.init(Problem(Arms(3), scale=scale), 2, generator)
        feedback = Feedback(np.zeros((2, 40, 0)), arm[..., None], reward, None, np.ones((2, 40)))
        state = policy.update(state, feedback, generator)
        listed.append(policy.probabilities(state, np.zeros((2, 6, 0))))
    if isinstance(policy, UCB1):
        # UCB1 divides by the span and keeps the offset, which is the same for every arm.
        assert np.all((listed[0] > 0) == (listed[1] > 0))
    else:
        np.testing.assert_allclose(*listed)
