"""Rivals compared with the algorithms of their papers, written as loops."""

import math

import numpy as np
import pytest
from scipy.special import rel_entr

from submax import (
    Arms,
    Feedback,
    Problem,
    make_policy,
    simulate,
)
from submax.policies import EXP3, EXP3IX, CascadeKLUCB, CascadeUCB
from submax.research import Adversarial, Cascade

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
