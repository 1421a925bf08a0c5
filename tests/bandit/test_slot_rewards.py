import math
from functools import partial

import numpy as np
import pytest
from refusals import raises_code
from stored import exported

import submax
from submax.core.problem import Feedback
from submax.policies.slots import PerSlot

SLOTS = {"title": ["a", "b", "c"], "image": ["x", "y"]}


@pytest.fixture
def opened(opened):
    return partial(opened, actions=SLOTS, policy="rcp-adaptive", rewards="slots")


@pytest.mark.parametrize(
    "reward",
    [
        {"value": [0, 1]},
        {"value": {"title": 0, "image": 1}},
        {"value": 1, "slot": "image"},
        {"value": np.array([0.0, 1.0])},
    ],
)
def test_a_row_has_the_reward_of_each_slot_and_their_sum(opened, clock, reward):
    bandit = opened()
    assert bandit.reward(bandit.decide().id, **reward).status == "accepted"
    clock.now += 61
    (row,) = exported(bandit)
    assert row["reward"] == 1.0
    assert [row["reward_title"] or 0.0, row["reward_image"]] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("reward", "code"),
    [
        ({"value": 1.0}, "unknown-reward-name"),
        ({"value": 1.0, "slot": "footer"}, "unknown-reward-name"),
        ({"value": 1.0, "name": "title"}, "unknown-reward-name"),
        ({"value": [0, 1, 0]}, "invalid-input"),
    ],
)
def test_a_reward_that_fits_no_slot_is_refused(opened, reward, code):
    bandit = opened()
    visit = bandit.decide().id
    before = bandit.counts()
    with raises_code(code):
        bandit.reward(visit, **reward)
    assert bandit.counts() == before
    with raises_code("invalid-input", "default_reward"):
        opened(default_reward=1.0)


def test_versions_are_fitted_to_the_rewards_of_slots(opened, clock):
    bandit = opened()
    best = {"title": "c", "image": "y"}
    for _ in range(60):
        shown = bandit.decide()
        bandit.reward(shown.id, [float(shown.action[slot] == best[slot]) for slot in SLOTS])
    clock.now += 61
    assert bandit.refit().learned
    assert {bandit.decide().action["title"] for _ in range(20)} == {"c"}


def test_each_slot_learns_from_its_own_reward_as_a_bandit_of_its_own_would(seed):
    rng = np.random.default_rng(seed)
    problem = submax.Problem(
        submax.Slots((3, 2)), scale=submax.Discrete((0.0, 1.0, 2.0)), slot_scale=submax.Binary()
    )
    inner = submax.make_policy("rcp-submax")
    policy = PerSlot(inner)
    action = np.stack([rng.integers(3, size=200), rng.integers(2, size=200)], axis=-1)[None]
    rewards = (rng.random((1, 200, 2)) < 0.3 + 0.2 * action) * 1.0
    rewards[0, :50, 1] = np.nan
    total, log_prob = np.nansum(rewards, axis=-1), np.full((1, 200), -math.log(6))
    context = np.zeros((1, 200, 0))
    given = Feedback(context, action, total, log_prob, np.ones((1, 200)), rewards)
    state = policy.update(policy.init(problem, 1, rng), given, rng)
    for slot, size in enumerate((3, 2)):
        rows = np.isfinite(given.slot_reward[0, :, slot])
        alone = Feedback(
            given.context[:, rows],
            given.action[:, rows, slot : slot + 1],
            given.slot_reward[:, rows, slot],
            given.log_prob[:, rows],
            given.weight[:, rows],
        )
        own = inner.update(inner.init(submax.Problem(submax.Arms(size)), 1, rng), alone, rng)
        context = np.zeros((1, 1, 0))
        expected = inner.probabilities(own, context)
        assert np.allclose(inner.probabilities(state.slots[slot], context), expected)
    joint = policy.probabilities(state, np.zeros((1, 1, 0)))
    assert joint.sum() == pytest.approx(1.0)


def test_with_rewards_of_slots_less_is_lost_than_with_their_sum(seed):
    """Ten slots of three choices: the sum of ten rewards hides what each slot earned."""
    slots, replicas, batches, batch = 10, 10, 15, 20
    rng = np.random.default_rng([seed, 3])
    chance = rng.uniform(0.1, 0.9, size=(replicas, slots, 3))
    scale = submax.Discrete(tuple(float(number) for number in range(slots + 1)))
    lost = []
    for slot_scale in (submax.Binary(), None):
        problem = submax.Problem(submax.Slots((3,) * slots), scale=scale, slot_scale=slot_scale)
        policy = PerSlot(submax.make_policy("rcp-submax"))
        state, total = policy.init(problem, replicas, rng), np.zeros(replicas)
        for _ in range(batches):
            context = np.zeros((replicas, batch, 0))
            action, log_prob = policy.act(state, context, rng)
            means = np.take_along_axis(chance[:, None], action[..., None], axis=-1)[..., 0]
            total += (chance.max(axis=-1)[:, None] - means).sum(axis=(1, 2))
            reward = (rng.random(means.shape) < means) * 1.0
            total_reward, by_slot = reward.sum(axis=-1), reward if slot_scale else None
            weight = np.ones(total_reward.shape)
            given = Feedback(context, action, total_reward, log_prob, weight, by_slot)
            state = policy.update(state, given, rng)
        lost.append(total)
    difference = lost[0] - lost[1]
    assert difference.mean() < -4 * difference.std() / math.sqrt(replicas)
