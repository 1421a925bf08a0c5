import numpy as np
import pytest

from submax import Arms, Feedback, Problem, Slots, Training
from submax.estimators import CVAE, Counting, Softmax
from submax.policies import RewardConditioned, SlotBySlot
from submax.strategies import Iterated, Optimized, SubMax, Tracking
from submax.testing.problems import some_contexts, some_feedback

BRIEF = Training(steps=40, batch=32, learning_rate=0.02)
SOFTMAX = Softmax(hidden=8, training=BRIEF)
NETWORK = CVAE(hidden=8, latent=2, draws=3, training=BRIEF)
TRILLION = Slots((10,) * 12)
BY_SOFTMAX = pytest.param(SOFTMAX, Tracking(0.3), marks=pytest.mark.xdist_group("Softmax"))
BY_CVAE = pytest.param(NETWORK, SubMax(), marks=pytest.mark.xdist_group("CVAE"))


def taught(policy, problem, feedback, seed):
    rng = np.random.default_rng(seed)
    state = policy.record(policy.init(problem, len(feedback.reward), rng), feedback.action)
    return policy.update(state, feedback, rng)


def by_hand(arm, reward, size):
    """SubMax with add-one of one slot, from the raw rows of a replica."""
    good, bad = (
        np.array([1 + np.sum(arm[reward == r] == choice) for choice in range(size)]) for r in (1, 0)
    )
    gain = np.maximum(good / good.sum() - bad / bad.sum(), 0)
    return gain / gain.sum() if gain.sum() > 1e-12 else np.full(size, 1 / size)


def test_every_slot_is_submax_of_its_own_choices(seed):
    problem = Problem(Slots((2, 3)))
    feedback = some_feedback(problem, 5, 60, seed)
    policy = SlotBySlot(Counting(1.0), SubMax())
    state = taught(policy, problem, feedback, seed)
    found = policy.probabilities(state, np.zeros((5, 1, 0)))[:, 0]
    for replica in range(5):
        first, second = (
            by_hand(feedback.action[replica, :, slot], feedback.reward[replica], size)
            for slot, size in ((0, 2), (1, 3))
        )
        np.testing.assert_allclose(found[replica], np.outer(first, second).ravel(), atol=1e-9)


@pytest.mark.parametrize(
    ("estimator", "strategy"),
    [
        *((Counting(), strategy) for strategy in (SubMax(), Optimized(), Iterated(2), Tracking())),
        (Counting("fitted"), Tracking()),
        BY_SOFTMAX,
        BY_CVAE,
    ],
    ids=lambda one: type(one).__name__,
)
def test_with_one_slot_it_is_the_policy_that_lists(estimator, strategy, seed):
    problem = Problem(Arms(5), context_width=3)
    feedback = some_feedback(problem, 2, 60, seed)
    context = some_contexts(problem, 2, 4, seed)
    found, expected = (
        policy.probabilities(taught(policy, problem, feedback, seed), context)
        for policy in (SlotBySlot(estimator, strategy), RewardConditioned(estimator, strategy))
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert np.ptp(found, axis=-1).min() > 0


@pytest.mark.parametrize(
    ("estimator", "strategy"),
    [BY_SOFTMAX, pytest.param(*BY_CVAE.values, marks=[*BY_CVAE.marks, pytest.mark.soak])],
    ids=lambda one: type(one).__name__,
)
def test_a_trillion_actions_have_exact_probabilities(estimator, strategy, seed):
    problem, policy = Problem(TRILLION, context_width=2), SlotBySlot(estimator, strategy)
    state = taught(policy, problem, some_feedback(problem, 2, 80, seed), seed)
    context = some_contexts(problem, 2, 50, seed)
    action, log_prob = policy.act(state, context, np.random.default_rng((seed, 1)))
    assert TRILLION.contains(action)
    np.testing.assert_allclose(log_prob, policy.log_prob(state, context, action))
    # Where all slots but one are kept, its choices share out what the others leave.
    slots = policy.choices(state, context)
    for slot in range(12):
        changed = np.repeat(action[:, :, None], 10, axis=2)
        changed[..., slot] = np.arange(10)
        rows, alike = np.repeat(context, 10, axis=1), changed.reshape(2, 500, 12)
        found = policy.log_prob(state, rows, alike).reshape(2, 50, 10)
        chosen = np.take_along_axis(slots[slot], action[..., slot, None], axis=2)[..., 0]
        np.testing.assert_allclose(np.exp(found).sum(axis=-1), np.exp(log_prob) / chosen)


@pytest.mark.xdist_group("CVAE")
@pytest.mark.parametrize("estimator", [SOFTMAX, NETWORK], ids=lambda one: type(one).__name__)
def test_networks_say_of_choices_what_they_say_of_joint_actions(estimator, seed):
    space = Slots((2, 3, 4))
    problem, rng = Problem(space, context_width=2), np.random.default_rng(seed)
    params = estimator.init(problem, 2, rng)
    params = estimator.fit(params, some_feedback(problem, 2, 60, seed), rng)
    context = some_contexts(problem, 2, 5, seed)
    listed = estimator.belief(params, context).prob(space.listing()[None, None])
    for slot, found in enumerate(estimator.belief(params, context).prob_of_choices()):
        for choice in range(space.sizes[slot]):
            with_it = space.listing()[:, slot] == choice
            expected = listed[..., with_it].sum(axis=-1)
            np.testing.assert_allclose(found[..., choice], expected, rtol=1e-6)


def test_smoothing_counts_once_for_each_choice_and_not_for_each_joint_action(seed):
    """Rewards are rare, the better choice was taken most: joint smoothing would hide it."""
    space, rng = Slots((8,) * 5), np.random.default_rng(seed)
    action = space.uniform((1, 20_000), rng)
    popular = rng.random((1, 20_000, 5)) < 0.5
    action = np.where(popular, 3, action)
    reward = (rng.random((1, 20_000)) < np.where(action[..., 0] == 3, 0.09, 0.03)) * 1.0
    feedback = Feedback(np.zeros((1, 20_000, 0)), action, reward, None, np.ones((1, 20_000)))
    for policy in (SlotBySlot(), SlotBySlot(Counting("fitted"), Tracking())):
        state = taught(policy, Problem(space), feedback, seed)
        assert policy.choices(state, np.zeros((1, 1, 0)))[0][0, 0, 3] > 0.95


@pytest.mark.parametrize("smoothing", [1.0, "fitted"])
def test_evidence_is_what_was_counted_of_the_slot(smoothing, seed):
    problem, estimator = Problem(Slots((2, 3))), Counting(smoothing)
    feedback, rng = some_feedback(problem, 2, 60, seed), np.random.default_rng(seed)
    params = estimator.fit(estimator.init(problem, 2, rng), feedback, rng)
    context = np.zeros((2, 1, 0))
    found = estimator.belief(params, context).observation_weights_by_slot()
    for slot, size in enumerate((2, 3)):
        # As if the slot were a problem of its own.
        alone = Problem(Arms(size))
        part = feedback._replace(action=feedback.action[..., slot, None])
        own = estimator.fit(estimator.init(alone, 2, rng), part, rng)
        np.testing.assert_allclose(
            found[slot], estimator.belief(own, context).observation_weights(), rtol=1e-5
        )


def test_each_slot_finds_its_best_choice_where_a_joint_step_is_spread_thin(seed):
    """Five slots of eight: 32768 joint actions, of which 2000 rows say nothing one by one."""
    space, rng = Slots((8,) * 5), np.random.default_rng(seed)
    problem = Problem(space)
    action = space.uniform((8, 2000), rng)
    good = (action == 3).sum(axis=-1)
    reward = (rng.random((8, 2000)) < 0.1 + 0.15 * good) * 1.0
    feedback = Feedback(np.zeros((8, 2000, 0)), action, reward, None, np.ones((8, 2000)))
    right = {}
    for policy in (SlotBySlot(Counting(1.0)), RewardConditioned(Counting(1.0))):
        state = taught(policy, problem, feedback, seed)
        drawn = policy.act(state, np.zeros((8, 200, 0)), np.random.default_rng((seed, 3))).action
        right[type(policy)] = (drawn == 3).mean()
    # By slot the share of the right choice is Δ / (Δ + noise): most of the mass.
    assert right[SlotBySlot] > 2 * right[RewardConditioned]
    assert right[SlotBySlot] > 0.5
