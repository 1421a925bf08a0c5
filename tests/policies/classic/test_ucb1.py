import math

import numpy as np
import pytest

from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.spaces.arms import Arms
from submax.environments.arms.bernoulli import Bernoulli
from submax.policies.classic.ucb1 import UCB1
from submax.simulation.batch_flush import BatchFlush
from submax.simulation.lag import Lag
from submax.simulation.simulate import simulate

ARMS, OBSERVATIONS, REPLICAS = 4, 120, 8

KNOWN = {
    BatchFlush(1): lambda decision: decision,
    BatchFlush(7): lambda decision: decision // 7 * 7,
    BatchFlush(50): lambda decision: decision // 50 * 50,
    Lag(0): lambda decision: decision,
    Lag(1): lambda decision: max(decision - 1, 0),
    Lag(20): lambda decision: max(decision - 20, 0),
}
"""How many of the oldest rewards have come back when a decision is taken."""


def choice(past, rewards, exploration, counted):
    """The arm with the highest mean + √(c ln t / n), from the pulls that count in n and t."""
    pulls = [counted.count(arm) for arm in range(ARMS)]
    returned = past[: len(rewards)]
    best, best_index = 0, -math.inf
    for arm in range(ARMS):
        own = [r for a, r in zip(returned, rewards, strict=True) if a == arm]
        mean = sum(own) / len(own) if own else 0.0
        bonus = (
            math.sqrt(exploration * math.log(len(counted)) / pulls[arm]) if pulls[arm] else math.inf
        )
        if mean + bonus > best_index + 1e-12:
            best, best_index = arm, mean + bonus
    return best


@pytest.mark.parametrize("exploration", [2.0, 0.5, 0.0])
@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("delay", KNOWN, ids=repr)
def test_every_choice_is_that_of_a_slow_loop(delay, pending, exploration, seed):
    policy = UCB1(pending, exploration)
    trace = simulate(
        Bernoulli(ARMS),
        policy,
        observations=OBSERVATIONS,
        replicas=REPLICAS,
        delay=delay,
        seed=seed,
        points=None,
    )
    for replica in range(REPLICAS):
        arms = trace.actions[replica, :, 0].tolist()
        rewards = trace.rewards[replica].tolist()
        for decision in range(OBSERVATIONS):
            known = KNOWN[delay](decision)
            past = arms[:decision]
            counted = past if pending else past[:known]
            assert arms[decision] == choice(past, rewards[:known], exploration, counted)


def test_without_pending_pulls_a_batch_takes_one_arm(seed):
    policy, rng = UCB1(), np.random.default_rng(seed)
    state = policy.init(Problem(Arms(5)), 1, rng)
    assert np.all(policy.act(state, np.zeros((1, 10, 0)), rng).action == 0)


def test_with_pending_pulls_a_batch_goes_round(seed):
    policy, rng = UCB1(pending=True), np.random.default_rng(seed)
    state = policy.init(Problem(Arms(5)), 1, rng)
    action = policy.act(state, np.zeros((1, 10, 0)), rng).action
    assert action[0, :, 0].tolist() == [0, 1, 2, 3, 4] * 2


def test_pulls_under_way_are_forgotten_when_they_come_back(seed):
    policy, rng = UCB1(pending=True), np.random.default_rng(seed)
    state = policy.init(Problem(Arms(3)), 1, rng)
    action = np.array([[[0], [1], [1]]])
    state = policy.record(state, action)
    assert state.pending.tolist() == [[1.0, 2.0, 0.0]]
    back = Feedback(np.zeros((1, 2, 0)), action[:, :2], np.zeros((1, 2)), None, np.ones((1, 2)))
    state = policy.update(state, back, rng)
    assert state.pending.tolist() == [[0.0, 1.0, 0.0]]
    assert state.arms.pulls.tolist() == [[1.0, 1.0, 0.0]]


def test_the_lowest_arm_wins_a_tie_without_exploration(seed):
    policy, rng = UCB1(exploration=0.0), np.random.default_rng(seed)
    state = policy.init(Problem(Arms(3)), 1, rng)
    action = np.array([[[0], [0], [0], [1], [2]]])
    lost = Feedback(np.zeros((1, 5, 0)), action, np.zeros((1, 5)), None, np.ones((1, 5)))
    state = policy.update(state, lost, rng)
    assert policy.act(state, np.zeros((1, 1, 0)), rng).action.item() == 0


@pytest.mark.parametrize("exploration", [-1, float("nan"), float("inf"), True, "2", None])
def test_bad_exploration_is_refused(exploration):
    with pytest.raises(InputError, match="exploration must be a finite number, 0 or more, not"):
        UCB1(exploration=exploration)
