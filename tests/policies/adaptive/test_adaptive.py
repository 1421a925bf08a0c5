"""The preset rcp-adaptive, from raw observations to decisions."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.special import betaln

from submax import (
    Arms,
    BatchedRewards,
    Bernoulli,
    Binary,
    Box,
    Continuous,
    Counts,
    Discrete,
    Feedback,
    Lag,
    Memory,
    Problem,
    simulate,
)
from submax.estimators import Counting
from submax.policies import Gridded, RewardConditioned, make_policy
from submax.simulation.simulate import Pending
from submax.strategies import Tracking

ADAPTIVE = RewardConditioned(Counting("fitted"), Tracking())


def taught(policy, problem, feedback, seed):
    rng = np.random.default_rng(seed)
    return policy.update(policy.init(problem, len(feedback.reward), rng), feedback, rng)


def listed(policy, state):
    """Probabilities in one context: ``[R, M]``."""
    context = np.zeros((len(state.informed), 1, state.problem.context_width))
    return policy.probabilities(state, context)[:, 0]


def slow_smoothing(good, bad):
    """What to add to successes and failures, the rarer getting one."""
    pulls = good + bad
    tried = pulls > 0
    rare = np.sum(good[tried] / pulls[tried]) <= np.sum(bad[tried] / pulls[tried])
    one, other = (bad, good) if rare else (good, bad)

    def loss(place):
        likelihood = betaln(one + np.exp(place), other + 1) - betaln(np.exp(place), 1)
        return place**2 / 18 - float(likelihood.sum())

    best = minimize_scalar(loss, bounds=(-12, 12), method="bounded", options={"xatol": 1e-9})
    fitted = math.exp(best.x)
    return (1.0, fitted) if rare else (fitted, 1.0)


def slow(good, bad, observations, decisions):
    """The rule on the successes and failures of each arm, by a root finder on plain numbers."""
    good, bad = np.array(good, dtype=np.float64), np.array(bad, dtype=np.float64)
    if good.sum() == 0 or bad.sum() == 0:
        return np.full(len(good), 1 / len(good))
    more, less = slow_smoothing(good, bad)
    evidence = good + bad + more + less
    value = (good + more) / evidence
    batch = max(decisions, 20)
    demand = min(max(44 / (batch**0.3 * observations**0.2), 1.0), 6.0)
    demand = max(demand, math.log(observations / (5 * batch)))
    foot = math.log(max(value) / (1 - max(value)))

    def apart(mark):
        return value * np.log(value / mark) + (1 - value) * np.log((1 - value) / (1 - mark))

    worth = observations * apart(max(value)) / (len(value) / 2) ** 3
    demand = np.maximum(demand, np.log(np.maximum(worth, 1.0)))

    def missing(place):
        mark = 1 / (1 + math.exp(-foot - math.exp(place)))
        return np.maximum(demand / apart(mark) - evidence, 0.0)

    place = brentq(lambda at: missing(at).sum() - decisions, -8.0, 3.0, xtol=1e-13)
    return missing(place) / missing(place).sum()


def tallied(action, reward, size, weight=None):
    """Successes and failures of each arm of one replica."""
    good, bad = [0.0] * size, [0.0] * size
    weight = np.ones(len(reward)) if weight is None else weight
    for arm, paid, share in zip(action, reward, weight, strict=True):
        (good if paid else bad)[arm] += share
    return good, bad


def bernoulli_feedback(arms, rows, seed, replicas=3):
    rng = np.random.default_rng((seed, arms, rows))
    chance = rng.beta(1, 4, size=(replicas, arms))
    arm = rng.integers(arms, size=(replicas, rows))
    paid = rng.random((replicas, rows)) < np.take_along_axis(chance, arm, axis=1)
    paid[:, :2] = [0, 1]
    shape = paid.shape
    propensity = np.full(shape, -np.log(arms))
    nowhere = np.zeros((*shape, 0))
    return Feedback(nowhere, arm[..., None], paid * 1.0, propensity, np.ones(shape))


@pytest.mark.parametrize(("arms", "rows"), [(2, 4), (10, 100), (50, 1000)])
def test_it_is_the_rule_on_the_raw_observations(arms, rows, seed):
    feedback = bernoulli_feedback(arms, rows, seed)
    state = taught(ADAPTIVE, Problem(Arms(arms)), feedback, seed)
    found = listed(ADAPTIVE, state)
    for replica in range(3):
        counts = tallied(feedback.action[replica, :, 0], feedback.reward[replica], arms)
        np.testing.assert_allclose(found[replica], slow(*counts, rows, rows), atol=1e-3)


@pytest.mark.parametrize(
    ("delay", "batch"), [(BatchedRewards(1), 1), (BatchedRewards(25), 25), (Lag(12), 13)], ids=repr
)
def test_through_a_delay_it_learns_what_came_back_and_how_much_at_a_time(delay, batch, seed):
    rng, arms = np.random.default_rng((seed, 1)), 6
    chance = rng.beta(1, 2, size=arms)
    state, pending, seen = ADAPTIVE.init(Problem(Arms(arms)), 1, rng), Pending(), []
    for step in delay.schedule(170):
        context = np.zeros((1, step.decide, 0))
        action, log_prob = ADAPTIVE.act(state, context, rng)
        assert action.shape == (1, step.decide, 1)
        found = ADAPTIVE.log_prob(state, context, action)
        np.testing.assert_allclose(log_prob, found, atol=1e-12)
        state = ADAPTIVE.record(state, action)
        reward = (rng.random((1, step.decide)) < chance[action[..., 0]]) * 1.0
        pending.put(Feedback(context, action, reward, log_prob, np.ones(reward.shape)))
        if step.receive:
            back = pending.take(step.receive)
            seen += zip(back.action[0, :, 0], back.reward[0], strict=True)
            state = ADAPTIVE.update(state, back, rng)
    assert state.decision_counts.batch.item() == batch
    assert state.decision_counts.received.item() == len(seen)
    assert state.decision_counts.waiting.item() == 170 - len(seen)
    expected = slow(*tallied(*zip(*seen, strict=True), arms), len(seen), batch)
    np.testing.assert_allclose(listed(ADAPTIVE, state)[0], expected, atol=2e-3)


def test_it_regrets_less_than_chance(seed):
    environment = Bernoulli(8, 1, 3)
    settings = {"observations": 200, "delay": BatchedRewards(50), "replicas": 40, "seed": seed}
    runs = [
        simulate(environment, policy, **settings) for policy in (ADAPTIVE, make_policy("random"))
    ]
    gain = runs[1].final_regret - runs[0].final_regret
    assert gain.mean() > 0


@pytest.mark.parametrize("ahead", [1, 30, 900])
def test_who_knows_how_many_decisions_lie_ahead_is_believed(ahead, seed):
    feedback = bernoulli_feedback(6, 90, seed)
    state = taught(ADAPTIVE, Problem(Arms(6)), feedback, seed)
    told = ADAPTIVE.record(state, upcoming=ahead)
    found = listed(ADAPTIVE, told)
    for replica in range(3):
        counts = tallied(feedback.action[replica, :, 0], feedback.reward[replica], 6)
        np.testing.assert_allclose(found[replica], slow(*counts, 90, ahead), atol=1e-3)
    # What comes back later is counted again.
    assert (
        ADAPTIVE.update(told, feedback, np.random.default_rng(seed)).decision_counts.batch.tolist()
        == [90] * 3
    )


def test_a_batch_is_given_out_in_lots(seed):
    problem = Problem(Arms(900))
    fresh = ADAPTIVE.init(problem, 2, np.random.default_rng(seed))
    action, log_prob = ADAPTIVE.act(fresh, np.zeros((2, 400, 0)), np.random.default_rng(seed))
    # Six times the root of 400, and each as often as the others but for one.
    for row in action[..., 0]:
        lengths = np.unique(row, return_counts=True)[1]
        assert len(lengths) == 120
        assert set(lengths) <= {3, 4}
    np.testing.assert_allclose(log_prob, -np.log(900))


@pytest.mark.parametrize(
    ("scale", "reward"),
    [(Binary(), 0.0), (Binary(), 1.0), (Continuous(), 3.0), (Counts(), 3.0)],
    ids=repr,
)
def test_while_all_rewards_are_the_same_it_is_uniform(scale, reward, seed):
    feedback = bernoulli_feedback(4, 50, seed)
    same = feedback._replace(reward=np.full_like(feedback.reward, reward))
    found = listed(ADAPTIVE, taught(ADAPTIVE, Problem(Arms(4), scale=scale), same, seed))
    np.testing.assert_allclose(found, 0.25)


@pytest.mark.parametrize("window", [5, 30])
def test_in_a_window_the_rule_sees_the_last_rows(window, seed):
    policy = RewardConditioned(Counting("fitted", Memory(window=window)), Tracking())
    feedback, rng = bernoulli_feedback(4, 60, seed), np.random.default_rng(seed)
    feedback.reward[:, -2:] = [0, 1]
    state = policy.init(Problem(Arms(4)), 3, rng)
    for start in range(0, 60, 20):
        state = policy.update(state, feedback.rows(slice(start, start + 20)), rng)
    found = listed(policy, state)
    for replica in range(3):
        kept = feedback.action[replica, -window:, 0], feedback.reward[replica, -window:]
        expected = slow(*tallied(*kept, 4), 60, 20)
        np.testing.assert_allclose(found[replica], expected, atol=1e-3)


def test_what_fades_counts_in_part(seed):
    policy = RewardConditioned(Counting("fitted", Memory(discount=0.95)), Tracking())
    feedback = bernoulli_feedback(4, 60, seed)
    feedback.reward[:, -2:] = [0, 1]
    found = listed(policy, taught(policy, Problem(Arms(4)), feedback, seed))
    weight = 0.95 ** np.arange(59, -1, -1.0)
    for replica in range(3):
        rows = feedback.action[replica, :, 0], feedback.reward[replica]
        expected = slow(*tallied(*rows, 4, weight), 60, 60)
        np.testing.assert_allclose(found[replica], expected, atol=1e-3)


@pytest.mark.parametrize(("low", "high"), [(-3.0, -1.0), (0.0, 50.0), (2.0, 2.5)])
@pytest.mark.parametrize("rows", [0, 1, 80])
def test_names_of_arms_and_the_two_rewards_do_not_matter(rows, low, high, seed):
    feedback = bernoulli_feedback(5, 80, seed).rows(slice(0, rows))
    expected = listed(ADAPTIVE, taught(ADAPTIVE, Problem(Arms(5)), feedback, seed))
    moved = feedback._replace(reward=low + (high - low) * feedback.reward)
    problem, name = Problem(Arms(5), scale=Discrete((low, high))), np.array([3, 0, 4, 1, 2])
    found = listed(ADAPTIVE, taught(ADAPTIVE, problem, moved, seed))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    renamed = moved._replace(action=name[feedback.action])
    found = listed(ADAPTIVE, taught(ADAPTIVE, problem, renamed, seed))
    np.testing.assert_allclose(found[:, name], expected, atol=1e-4)


def test_huge_counts_leave_the_bad_alone(seed):
    arm, reward = np.array([[0, 0, 1, 1, 2, 2]])[..., None], np.array([[0.0, 1.0] * 3])
    weight = np.array([[9e6, 1e6, 5e6, 5e6, 1.0, 1.0]])
    feedback = Feedback(np.zeros((1, 6, 0)), arm, reward, None, weight)
    found = listed(ADAPTIVE, taught(ADAPTIVE, Problem(Arms(3)), feedback, seed))[0]
    assert found[0] == 0
    assert found[2] > found[1]


def test_on_a_grid_the_density_is_that_of_the_cell(seed):
    box, policy = Box((0.0,), (20.0,)), Gridded(ADAPTIVE, points=4)
    rng = np.random.default_rng((seed, 6))
    action = box.uniform((2, 80), rng)
    cell = np.floor(action[..., 0] / 5.0).astype(np.int64)
    reward = (rng.random((2, 80)) < np.array([0.1, 0.5, 0.2, 0.3])[cell]) * 1.0
    reward[:, :2] = [0, 1]
    feedback = Feedback(np.zeros((2, 80, 0)), action, reward, None, np.ones((2, 80)))
    state = policy.update(policy.record(policy.init(Problem(box), 2, rng), action), feedback, rng)
    chosen, log_prob = policy.act(state, np.zeros((2, 50, 0)), rng)
    for replica in range(2):
        expected = slow(*tallied(cell[replica], reward[replica], 4), 80, 80)
        there = np.floor(chosen[replica, :, 0] / 5.0).astype(np.int64)
        np.testing.assert_allclose(np.exp(log_prob[replica]), expected[there] / 5, atol=1e-3)


@pytest.mark.parametrize("asked", [2, 4])
def test_on_moving_levels_shift_and_unit_of_the_rewards_do_not_matter(asked, seed):
    feedback = bernoulli_feedback(5, 80, seed)
    rng = np.random.default_rng((seed, 3))
    reward = feedback.reward + rng.integers(0, 8, size=feedback.reward.shape)
    found = []
    for scale, given in (
        (Continuous(asked=asked), reward),
        (Continuous(low=-16.0, high=48.0, asked=asked), 4 * reward - 16),
        (Counts(asked=asked), 2 * reward),
    ):
        problem = Problem(Arms(5), scale=scale)
        state = taught(ADAPTIVE, problem, feedback._replace(reward=given), seed)
        found.append(listed(ADAPTIVE, state))
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)
    np.testing.assert_allclose(found[2], found[0], atol=1e-6)
    assert np.ptp(found[0], axis=-1).min() > 0


def test_on_moving_levels_rewards_are_those_of_the_nearest(seed):
    feedback, rng = bernoulli_feedback(4, 80, seed), np.random.default_rng((seed, 4))
    reward = rng.normal(feedback.reward, 0.3)
    problem = Problem(Arms(4), scale=Continuous())
    state = taught(ADAPTIVE, problem, feedback._replace(reward=reward), seed)
    low, high = (
        ADAPTIVE.estimator.belief(state.params, np.zeros((len(state.informed), 1, 0))).levels().T
    )
    paid = reward > ((low + high) / 2)[:, None]
    found = listed(ADAPTIVE, state)
    for replica in range(3):
        counts = tallied(feedback.action[replica, :, 0], paid[replica], 4)
        np.testing.assert_allclose(found[replica], slow(*counts, 80, 80), atol=1e-3)


def test_an_arm_that_has_become_bad_is_left(seed):
    policy, rng = make_policy("rcp-adaptive"), np.random.default_rng(seed)
    state = policy.init(Problem(Arms(2)), 2, rng)
    # Since the change, 60 rows of the better arm are 0.4 above the other: 6 standard errors. Over
    # all rows the other is still ahead, 0.72 to 0.5.
    for chance, rows in ((0.9, 2000), (0.1, 600)):
        arm = (rng.random((2, rows)) < 0.1).astype(np.int64)
        reward = (rng.random((2, rows)) < np.where(arm == 0, chance, 0.5)) * 1.0
        feedback = Feedback(
            np.zeros((2, rows, 0)), arm[..., None], reward, None, np.ones(arm.shape)
        )
        state = policy.update(policy.record(state, upcoming=100), feedback, rng)
    assert np.all(policy.probabilities(state, np.zeros((2, 1, 0)))[:, 0, 1] > 0.9)
