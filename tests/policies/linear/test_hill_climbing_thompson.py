import numpy as np
import pytest
from scipy import integrate, special

from submax import Arms, Discrete, Feedback, Problem, Slots
from submax.policies import HillClimbingThompson
from submax.research.rivals.climbing import Hills, SlotEffects, SlotRegression, climbed
from submax.testing.problems import some_feedback

JOINT = Problem(Slots((2, 3, 2)))


def one_row(action, reward, weight=1.0):
    return Feedback(
        context=np.zeros((1, 1, 0)),
        action=np.array(action).reshape(1, 1, -1),
        reward=np.full((1, 1), reward),
        log_prob=None,
        weight=np.full((1, 1), weight),
    )


def features(effects, action):
    """The whole vector x, most of it 0, written out by hand."""
    x = [1.0]
    one_hot = [np.eye(size)[choice] for size, choice in zip(effects.sizes, action, strict=True)]
    x.extend(np.concatenate(one_hot))
    for first in range(len(action)):
        for second in range(first + 1, len(action)):
            x.extend(np.outer(one_hot[first], one_hot[second]).ravel())
    return np.array(x)


def matched_moments(mean, variance, x, sign):
    """Mean and variance of every weight after one row, each by integration of its posterior."""
    result = []
    for own in range(len(mean)):
        rest = np.arange(len(mean)) != own
        others = x[rest] @ mean[rest]
        noise = np.sqrt(1 + x[rest] ** 2 @ variance[rest])
        spread = np.sqrt(variance[own])

        def density(z, power, own=own, others=others, noise=noise, spread=spread):
            weight = mean[own] + spread * z
            likelihood = special.ndtr(sign * (weight * x[own] + others) / noise)
            return weight**power * np.exp(-(z**2) / 2) * likelihood

        total, first, second = (
            integrate.quad(density, -10, 10, args=(power,), epsabs=1e-12)[0] for power in range(3)
        )
        result.append((first / total, second / total - (first / total) ** 2))
    return np.array(result).T


@pytest.mark.parametrize("reward", [0.0, 1.0])
@pytest.mark.parametrize("problem", [JOINT, Problem(Arms(3))], ids=str)
def test_a_row_moves_the_posterior_to_the_matching_normals(problem, reward, seed):
    rng = np.random.default_rng(seed)
    effects = SlotEffects(problem.space.choices)
    shape = (1, effects.count)
    regression = SlotRegression(rng.normal(size=shape) / 3, rng.uniform(0.1, 2, size=shape))
    action = problem.space.action(np.array(rng.integers(problem.space.size)))
    found = regression.add(effects, problem, one_row(action, reward))
    x = features(effects, action)
    expected = matched_moments(regression.mean[0], regression.variance[0], x, 2 * reward - 1)
    assert np.allclose(found.mean[0], expected[0], rtol=0, atol=1e-8)
    assert np.allclose(found.variance[0], expected[1], rtol=0, atol=1e-8)


def test_active_effects_are_the_ones_of_the_written_out_vector():
    effects = SlotEffects((2, 1, 3))
    for action in Slots((2, 1, 3)).listing():
        sparse = np.zeros(effects.count)
        sparse[effects.active(action)] = 1.0
        assert np.array_equal(sparse, features(effects, action))
    for sizes in ((3,), (2, 3), (4, 1, 2, 5)):
        # The choices of an action have the prior variance together.
        effects = SlotEffects(sizes)
        active = effects.active(np.zeros(len(sizes), dtype=np.int64))
        assert np.isclose(effects.prior_variances(0.8)[active[1:]].sum(), 0.8)


def test_a_weight_multiplies_what_a_row_adds_to_the_precision(seed):
    effects = SlotEffects(JOINT.space.choices)
    prior = SlotRegression.prior(effects, 1, 1.0)
    once, thrice = (
        prior.add(effects, JOINT, one_row([1, 2, 0], 1.0, weight=weight)) for weight in (1.0, 3.0)
    )
    added = 1 / once.variance - 1 / prior.variance
    assert np.allclose(1 / thrice.variance - 1 / prior.variance, 3 * added)
    moved = once.mean / once.variance
    assert np.allclose(thrice.mean / thrice.variance, 3 * moved)


def test_only_the_highest_level_is_a_success():
    problem = Problem(Arms(2), scale=Discrete((0.0, 1.0, 2.0)))
    effects = SlotEffects(problem.space.choices)
    prior = SlotRegression.prior(effects, 1, 1.0)
    rise = [
        prior.add(effects, problem, one_row([0], reward)).mean[0, 0]
        for reward in (0.0, 1.0, 1.4, 1.6, 2.0)
    ]
    assert np.array_equal(np.sign(rise), [-1, -1, -1, 1, 1])


def test_rare_rewards_are_believed_after_few_rows(seed):
    rng = np.random.default_rng(seed)
    problem = Problem(Slots((2, 4, 8, 16, 32)))
    effects = SlotEffects(problem.space.choices)
    replicas, rows = 40, 200
    feedback = some_feedback(problem, replicas, rows, seed)
    rare = np.tile(np.arange(rows) < rows // 20, (replicas, 1)).astype(np.float64)
    feedback = feedback._replace(reward=rng.permuted(rare, axis=1))
    found = SlotRegression.prior(effects, replicas, 1.0).add(effects, problem, feedback)
    replica = np.arange(replicas)[:, None, None]
    active = effects.active(feedback.action)
    deviation = np.sqrt(1 + found.variance[replica, active].sum(axis=-1))
    predicted = special.ndtr(found.mean[replica, active].sum(axis=-1) / deviation).mean()
    assert found.mean[:, 0].mean() < -1.4
    assert 0.035 < predicted < 0.08


def enumerated(effects, weights, space):
    """The best action of each weight vector and all heights, by listing."""
    listing = space.listing()
    active = effects.active(listing)[:, 1:] - 1
    heights = weights[:, active].sum(axis=-1)
    return listing[heights.argmax(axis=-1)], heights


def test_the_climb_is_exact_where_effects_add_up(seed):
    rng, space = np.random.default_rng(seed), Slots((2, 3, 1, 4))
    effects = SlotEffects(space.sizes)
    weights = rng.normal(size=(50, effects.count - 1)).astype(np.float32)
    weights[:, 10:] = 0
    hills = Hills(effects, weights)
    best, _ = enumerated(effects, weights, space)
    assert np.array_equal(climbed(hills, rng.integers(space.sizes, size=(50, 1, 4)), 1), best)


def test_no_single_change_improves_where_the_climb_ends(seed):
    rng = np.random.default_rng(seed)
    space = Slots((3, 4, 2))
    effects = SlotEffects(space.sizes)
    weights = rng.normal(size=(60, effects.count - 1)).astype(np.float32)
    hills = Hills(effects, weights)
    starts = rng.integers(space.sizes, size=(60, 8, 3))
    end = climbed(hills, starts, 50)
    best, heights = enumerated(effects, weights, space)
    reached = heights[np.arange(60), space.index(end)]
    for slot, size in enumerate(space.sizes):
        for choice in range(size):
            changed = end.copy()
            changed[:, slot] = choice
            assert np.all(heights[np.arange(60), space.index(changed)] <= reached + 1e-5)
    assert np.mean(np.all(end == best, axis=-1)) > 0.8
    first = climbed(hills, starts[:, :1], 50)
    assert np.all(heights[np.arange(60), space.index(first)] <= reached + 1e-5)


def test_it_learns_among_more_actions_than_can_be_listed(seed):
    rng = np.random.default_rng(seed)
    problem = Problem(Slots((30,) * 14))
    policy = HillClimbingThompson(draws=30, restarts=1)
    state = policy.init(problem, 1, rng)
    decision = policy.act(state, np.zeros((1, 200, 0)), rng)
    assert np.allclose(decision.log_prob, -14 * np.log(30))
    reward = (decision.action[..., 0] < 15).astype(np.float64)
    feedback = Feedback(np.zeros((1, 200, 0)), decision.action, reward, None, np.ones((1, 200)))
    state = policy.update(state, feedback, rng)
    after = policy.act(state, np.zeros((1, 200, 0)), rng)
    assert np.allclose(policy.log_prob(state, np.zeros((1, 200, 0)), after.action), after.log_prob)
    assert np.mean(after.action[..., 0] < 15) > 0.6


def test_it_finds_a_good_joint_action(seed):
    # Rewards of 5 % for most; every right choice adds to the score, a right pair even more.
    rng = np.random.default_rng(seed)
    sizes, replicas, rows = (2, 4, 8, 6), 4, 300
    problem, policy = Problem(Slots(sizes)), HillClimbingThompson(draws=100)

    def chance(action):
        right = action == 1
        return special.ndtr(-1.8 + 0.4 * right.sum(axis=-1) + 0.6 * (right[..., 2] & right[..., 3]))

    state = policy.init(problem, replicas, rng)
    earned = []
    for _ in range(12):
        decision = policy.act(state, np.zeros((replicas, rows, 0)), rng)
        expected = chance(decision.action)
        earned.append(expected.mean())
        reward = (rng.random(expected.shape) < expected).astype(np.float64)
        feedback = Feedback(
            np.zeros((replicas, rows, 0)), decision.action, reward, None, np.ones(reward.shape)
        )
        state = policy.update(state, feedback, rng)
    assert earned[0] < 0.15
    assert earned[-1] > 0.4


def test_a_single_decision_after_each_update_has_the_distribution_of_the_pool(seed):
    """Actions of many pools with one draw each, against the shares of one large pool."""
    rng, replicas = np.random.default_rng(seed), 400
    rows = some_feedback(JOINT, 1, 12, seed)
    many = Feedback(*(None if part is None else np.repeat(part, replicas, axis=0) for part in rows))
    single = HillClimbingThompson(draws=1)
    state = single.update(single.init(JOINT, replicas, rng), many, rng)
    drawn, _ = single.act(state, np.zeros((replicas, 1, 0)), rng)
    pool = HillClimbingThompson(draws=4000)
    state = pool.update(pool.init(JOINT, 1, rng), rows, rng)
    expected = pool.probabilities(state, np.zeros((1, 1, 0)))[0, 0]
    counts = np.bincount(JOINT.space.index(drawn).ravel(), minlength=JOINT.space.size)
    # The pool's shares have errors too, a tenth of the variance; 5 standard errors for 12 actions.
    error = np.sqrt(expected * (1 - expected) * replicas * 1.1 + 1)
    assert single.draws == 1
    assert np.abs(counts - replicas * expected).max() < 5 * error.max()
