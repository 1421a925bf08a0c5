"""Rivals compared with the algorithms of their papers, written as loops, and with scikit-learn."""

import itertools
import math

import numpy as np
import pytest
from scipy import special
from scipy.special import rel_entr

from submax import Adversarial, Arms, Cascade, Continuous, Feedback, Problem, make_policy, simulate
from submax.policies import (
    EXP3,
    EXP3IX,
    CascadeKLUCB,
    CascadeUCB,
    HybridLinUCB,
    LogisticThompson,
    LogisticUCB,
)

EXP3_ARMS, EXP3_ROUNDS = 4, 40


def exp3_probabilities(history, gamma):
    """Figure 1 of Auer et al. (2002): weights, one multiplication after every decision."""
    weights = [1.0] * EXP3_ARMS
    for arm, reward, probability in history:
        weights[arm] *= math.exp(gamma * (reward / probability) / EXP3_ARMS)
    return [(1 - gamma) * weight / sum(weights) + gamma / EXP3_ARMS for weight in weights]


def exp3_ix_probabilities(history):
    """Algorithm 1 of Neu (2015) with η_t = √(2 ln K / (K t)) and γ_t = η_t / 2."""
    losses = [0.0] * EXP3_ARMS
    for number, (arm, reward, probability) in enumerate(history, 1):
        rate = math.sqrt(2 * math.log(EXP3_ARMS) / (EXP3_ARMS * number))
        losses[arm] += (1 - reward) / (probability + rate / 2)
    rate = math.sqrt(2 * math.log(EXP3_ARMS) / (EXP3_ARMS * (len(history) + 1)))
    mass = [math.exp(-rate * loss) for loss in losses]
    return [one / sum(mass) for one in mass]


@pytest.mark.parametrize(
    ("policy", "oracle"),
    [
        (EXP3(0.2), lambda history: exp3_probabilities(history, 0.2)),
        (EXP3IX(), exp3_ix_probabilities),
    ],
)
def test_probabilities_are_those_of_the_paper(policy, oracle, seed):
    rng, problem = np.random.default_rng(seed), Problem(Arms(EXP3_ARMS))
    state, context, history = policy.init(problem, 1, rng), np.zeros((1, 1, 0)), []
    for _ in range(EXP3_ROUNDS):
        found = policy.probabilities(state, context)[0, 0]
        np.testing.assert_allclose(found, oracle(history), rtol=1e-9)
        action, log_prob = policy.act(state, context, rng)
        reward = rng.integers(2, size=(1, 1)).astype(float)
        history.append((int(action[0, 0, 0]), float(reward[0, 0]), math.exp(log_prob[0, 0])))
        feedback = Feedback(context, action, reward, log_prob, np.ones((1, 1)))
        state = policy.update(state, feedback, rng)


@pytest.mark.parametrize("name", ["exp3", "exp3-ix"])
def test_regret_against_the_best_single_arm_is_below_the_bound_of_the_paper(name, seed):
    """The first arm is good in the first third, the second afterwards."""
    rounds = 600
    table = np.full((rounds, 2), 0.2)
    table[: rounds // 3, 0] = table[rounds // 3 :, 1] = 0.8
    environment = Adversarial.of(table)
    trace = simulate(environment, make_policy(name), observations=rounds, replicas=20, seed=seed)
    _, best = environment.best_fixed_arm(rounds)
    # Auer et al. (2002), corollary 3.2, for rewards in a range of 0.6 and the best γ.
    bound = 0.6 * 2.63 * math.sqrt(rounds * 2 * math.log(2))
    assert best - trace.final_reward.mean() < bound


ITEMS, POSITIONS = 5, 3


def ucb_bound(share, looked, rounds):
    return share + math.sqrt(1.5 * math.log(max(rounds, 1)) / looked)


def kl_bound(share, looked, rounds):
    """The largest q with looked · kl(share, q) ≤ ln t + 3 ln ln t, by bisection."""
    level = math.log(rounds) + 3 * math.log(math.log(rounds)) if rounds > 1 else 0.0
    low, high = share, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        inside = looked * (rel_entr(share, middle) + rel_entr(1 - share, 1 - middle)) <= level
        low, high = (middle, high) if inside else (low, middle)
    return low


@pytest.mark.parametrize(
    ("policy", "bound"), [(CascadeUCB(), ucb_bound), (CascadeKLUCB(), kl_bound)]
)
def test_slates_are_ordered_by_the_bounds_of_the_paper(policy, bound, seed):
    environment = Cascade(ITEMS, POSITIONS)
    rng = np.random.default_rng(seed)
    world = environment.reset(1, rng)
    state, context = policy.init(environment.problem, 1, rng), np.zeros((1, 1, 0))
    looked, clicked = [0] * ITEMS, [0] * ITEMS
    for rounds in range(60):
        bounds = [
            math.inf
            if looked[item] == 0
            else bound(clicked[item] / looked[item], looked[item], rounds)
            for item in range(ITEMS)
        ]
        action, log_prob = policy.act(state, context, rng)
        slate = action[0, 0].tolist()
        assert len(set(slate)) == POSITIONS
        expected = sorted(bounds, reverse=True)[:POSITIONS]
        np.testing.assert_allclose([bounds[item] for item in slate], expected, atol=1e-9)
        reward = environment.reward(world, context, action, rng)
        place = POSITIONS if reward[0, 0] == 0 else round(POSITIONS * (1 - reward[0, 0]))
        for position, item in enumerate(slate[: place + 1]):
            looked[item] += 1
            clicked[item] += position == place
        feedback = Feedback(context, action, reward, log_prob, np.ones((1, 1)))
        state = policy.update(state, feedback, rng)
        assert state.looked[0].tolist() == looked
        assert state.clicked[0].tolist() == clicked


HYBRID_ACTIONS, HYBRID_WIDTH, HYBRID_ROWS = 3, 2, 30
FEATURES = ((0.5,), (2.0,), (-1.0,))
HYBRID_PROBLEM = Problem(
    Arms(HYBRID_ACTIONS), HYBRID_WIDTH, Continuous(), action_features=(FEATURES,)
)


class Blocks:
    """The algorithm of the paper: A₀, b₀, and A_a, B_a, b_a of every action."""

    def __init__(self, shared, own):
        self.shared = np.eye(shared)
        self.shared_moment = np.zeros(shared)
        self.own = [np.eye(own) for _ in range(HYBRID_ACTIONS)]
        self.cross = [np.zeros((own, shared)) for _ in range(HYBRID_ACTIONS)]
        self.moment = [np.zeros(own) for _ in range(HYBRID_ACTIONS)]

    def mean_and_deviation(self, action, z, x):
        inverse0, inverse = np.linalg.inv(self.shared), np.linalg.inv(self.own[action])
        cross = self.cross[action]
        beta = inverse0 @ self.shared_moment
        theta = inverse @ (self.moment[action] - cross @ beta)
        variance = (
            z @ inverse0 @ z
            - 2 * z @ inverse0 @ cross.T @ inverse @ x
            + x @ inverse @ x
            + x @ inverse @ cross @ inverse0 @ cross.T @ inverse @ x
        )
        return z @ beta + x @ theta, np.sqrt(variance)

    def learn(self, action, z, x, reward):
        inverse, cross = np.linalg.inv(self.own[action]), self.cross[action]
        self.shared += cross.T @ inverse @ cross
        self.shared_moment += cross.T @ inverse @ self.moment[action]
        self.own[action] += np.outer(x, x)
        self.cross[action] = cross + np.outer(x, z)
        self.moment[action] += reward * x
        inverse, cross = np.linalg.inv(self.own[action]), self.cross[action]
        self.shared += np.outer(z, z) - cross.T @ inverse @ cross
        self.shared_moment += reward * z - cross.T @ inverse @ self.moment[action]


def test_bounds_are_those_of_the_algorithm(seed):
    """With the α at which two bounds are equal but for 1e-7, the higher one is taken."""
    rng, policy = np.random.default_rng(seed), HybridLinUCB()
    state = policy.init(HYBRID_PROBLEM, 1, rng)
    blocks = Blocks(2 * (1 + HYBRID_WIDTH), 1 + HYBRID_WIDTH)
    for _ in range(HYBRID_ROWS):
        context = rng.normal(size=(1, 1, HYBRID_WIDTH))
        x = np.array([1.0, *context[0, 0]])
        rows = [np.outer([1.0, *one], x).ravel() for one in FEATURES]
        parts = [blocks.mean_and_deviation(action, row, x) for action, row in enumerate(rows)]
        mean, deviation = np.transpose(parts)
        for one, other in itertools.combinations(range(HYBRID_ACTIONS), 2):
            apart = deviation[other] - deviation[one]
            equal = (mean[one] - mean[other]) / apart
            gap = 1e-7 * (1 + np.abs(mean + equal * deviation).max()) / abs(apart)
            for alpha in (equal - gap, equal + gap):
                if alpha >= 0:
                    found = HybridLinUCB(alpha).probabilities(state, context)[0, 0]
                    assert found[np.argmax(mean + alpha * deviation)] == 1
        action = int(rng.integers(HYBRID_ACTIONS))
        reward = float(rng.normal())
        blocks.learn(action, rows[action], x, reward)
        feedback = Feedback(
            context, np.full((1, 1, 1), action), np.full((1, 1), reward), None, np.ones((1, 1))
        )
        state = policy.update(state, feedback, rng)


ACTIONS, WIDTH, ROWS = 3, 2, 60
PROBLEM = Problem(Arms(ACTIONS), WIDTH)


def feedback_of(seed):
    rng = np.random.default_rng(seed)
    context = rng.normal(size=(2, ROWS, WIDTH))
    action = rng.integers(ACTIONS, size=(2, ROWS, 1))
    chance = special.expit(2 * context[..., 0] * (action[..., 0] - 1))
    reward = (rng.random((2, ROWS)) < chance).astype(float)
    return Feedback(context, action, reward, None, np.ones((2, ROWS)))


@pytest.mark.parametrize("precision", [0.1, 1.0, 10.0])
def test_the_mode_is_that_of_penalized_regression_in_scikit_learn(precision, seed):
    linear_model = pytest.importorskip("sklearn.linear_model")
    policy, feedback = LogisticUCB(precision=precision), feedback_of(seed)
    state = policy.update(policy.init(PROBLEM, 2, np.random.default_rng(0)), feedback, None)
    for replica in range(2):
        for action in range(ACTIONS):
            mine = feedback.action[replica, :, 0] == action
            rows = np.column_stack([np.ones(mine.sum()), feedback.context[replica, mine]])
            rewards = feedback.reward[replica, mine]
            if len(set(rewards)) < 2:
                continue
            fitted = linear_model.LogisticRegression(
                C=1 / precision, fit_intercept=False, tol=1e-10, max_iter=10000
            ).fit(rows, rewards)
            np.testing.assert_allclose(state.mean[replica, action], fitted.coef_[0], atol=1e-5)
            chance = special.expit(rows @ state.mean[replica, action])
            curvature = (rows * (chance * (1 - chance))[:, None]).T @ rows
            np.testing.assert_allclose(
                state.precision[replica, action], curvature + precision * np.eye(3), atol=1e-9
            )


def test_the_logistic_bound_is_the_mean_plus_a_multiple_of_the_deviation(seed):
    policy, feedback = LogisticUCB(alpha=2.0), feedback_of(seed)
    state = policy.update(policy.init(PROBLEM, 2, np.random.default_rng(0)), feedback, None)
    context = feedback.context[:, :5]
    listed = policy.probabilities(state, context)
    for replica, row in np.ndindex(2, 5):
        x = np.array([1.0, *context[replica, row]])
        bounds = [
            x @ state.mean[replica, action]
            + 2.0 * np.sqrt(x @ np.linalg.solve(state.precision[replica, action], x))
            for action in range(ACTIONS)
        ]
        assert listed[replica, row].argmax() == int(np.argmax(bounds))


def test_draws_are_those_of_the_coefficients(seed):
    """Frequencies of drawn coefficients, within five standard errors of the probabilities."""
    policy, feedback = LogisticThompson(), feedback_of(seed)
    state = policy.update(policy.init(PROBLEM, 2, np.random.default_rng(0)), feedback, None)
    rng, draws = np.random.default_rng(seed), 20000
    x = np.array([1.0, 0.3, -0.7])
    products = [
        rng.multivariate_normal(state.mean[0, a], np.linalg.inv(state.precision[0, a]), draws) @ x
        for a in range(ACTIONS)
    ]
    share = np.bincount(np.argmax(products, axis=0), minlength=ACTIONS) / draws
    found = policy.probabilities(state, np.tile(x[1:], (2, 1, 1)))[0, 0]
    assert np.all(np.abs(share - found) < 5 * np.sqrt(found * (1 - found) / draws) + 1e-9)
