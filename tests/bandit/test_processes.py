"""Several bandits on one store, as several processes have them."""

import numpy as np
import pytest
from refusals import raises_code
from stored import fitted

from submax.bandit.durable import open_bandit
from submax.policies.thompson import Thompson
from submax.policies.ucb import UCB1

ARMS = ["A", "B", "C"]


@pytest.fixture
def opened(store, clock):
    def opened(**declaration):
        return open_bandit(store, background=False, clock=clock, **declaration)

    return opened


def refitted(bandit, clock, decisions=20):
    for made in bandit.decide_many([{}] * decisions):
        bandit.reward(made.id, 1.0)
    clock.now += 10
    return fitted(bandit)


def test_a_version_that_a_person_holds_is_not_replaced_by_one_that_was_under_way(opened, clock):
    first = opened(actions=ARMS, reward_wait=1.0)
    refitted(first, clock)
    refitted(first, clock)
    second = opened()
    assert second.roll_back() == 1
    assert refitted(first, clock).version == 3
    assert [bandit.version for bandit in (first, second, opened())] == [1, 1, 1]
    assert second.held
    assert second.publish() == first.publish() == 3


def test_another_policy_does_not_decide_by_the_state_of_the_last(opened, clock):
    bandit = opened(actions=ARMS, reward_wait=1.0, policy="thompson-1-1")
    refitted(bandit, clock)
    for policy in (UCB1(), Thompson(2.0, 2.0), "rcp-submax"):
        again = opened(policy=policy)
        again.decide()
        assert fitted(again).policy == again.settings.policy
        assert again.decide().version == again.version > 0
        assert again.failures.get("decisions by a policy that failed", 0) == 0


def test_numbers_of_numpy_are_numbers(opened):
    bandit = opened(actions=ARMS, context={"x": float}, policy="linucb", reward_wait=1.0)
    for number in (np.float32(1), np.int64(1), np.bool_(True)):
        made = bandit.decide({"x": number})
        assert bandit.reward(made.id, number).status == "accepted"
    with raises_code("invalid-input"):
        bandit.reward(made.id, 10**5000, key="huge")
