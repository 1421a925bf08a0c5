"""EXP3 and EXP3-IX, compared with the algorithms of their papers, written as loops."""

import math

import numpy as np
import pytest

from submax import Adversarial, Arms, Feedback, Problem, make_policy, simulate
from submax.policies import EXP3, EXP3IX

ARMS, ROUNDS = 4, 40


def exp3_probabilities(history, gamma):
    """Figure 1 of Auer et al. (2002): weights, one multiplication after every decision."""
    weights = [1.0] * ARMS
    for arm, reward, probability in history:
        weights[arm] *= math.exp(gamma * (reward / probability) / ARMS)
    return [(1 - gamma) * weight / sum(weights) + gamma / ARMS for weight in weights]


def exp3_ix_probabilities(history):
    """Algorithm 1 of Neu (2015) with η_t = √(2 ln K / (K t)) and γ_t = η_t / 2."""
    losses = [0.0] * ARMS
    for number, (arm, reward, probability) in enumerate(history, 1):
        rate = math.sqrt(2 * math.log(ARMS) / (ARMS * number))
        losses[arm] += (1 - reward) / (probability + rate / 2)
    rate = math.sqrt(2 * math.log(ARMS) / (ARMS * (len(history) + 1)))
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
    rng, problem = np.random.default_rng(seed), Problem(Arms(ARMS))
    state, context, history = policy.init(problem, 1, rng), np.zeros((1, 1, 0)), []
    for _ in range(ROUNDS):
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
