import numpy as np
import pytest

from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.rewards.binary import Binary
from submax.core.rewards.continuous import Continuous
from submax.core.rewards.counts import Counts
from submax.core.rewards.discrete import Discrete
from submax.core.spaces.arms import Arms
from submax.estimators.counting import Counting
from submax.policies.reward_conditioned.reward_conditioned import RewardConditioned
from submax.strategies.submax import SubMax
from submax.testing.rules.examples import some_feedback

CONTAINED = {
    Binary(): ([0.0, 1.0], [0.5, 2.0, -1.0, np.nan, np.inf]),
    Discrete((-1.0, 0.0, 2.5)): ([-1.0, 0.0, 2.5], [1.0, 2.4, np.nan, -np.inf]),
    Discrete((1.0, 2.0, 3.0), asked=2): ([1.0, 2.0, 3.0], [1.5, 0.0, 4.0]),
    Continuous(): ([-1e9, 0.0, 0.1, 1e9], [np.nan, np.inf, -np.inf]),
    Continuous(low=0.0): ([0.0, 1e9], [-1e-9, np.nan, np.inf]),
    Continuous(high=3.0): ([-1e9, 3.0], [3.1, -np.inf]),
    Continuous(low=-1.0, high=2.0): ([-1.0, 0.3, 2.0], [-1.1, 2.1, np.nan]),
    Counts(): ([0.0, 1.0, 1e6], [-1.0, 0.5, np.nan, np.inf]),
}
BOUNDS = {
    Binary(): (0.0, 1.0),
    Discrete((-1.0, 0.0, 2.5)): (-1.0, 2.5),
    Continuous(low=-1.0, high=2.0): (-1.0, 2.0),
    Continuous(low=-1.0): None,
    Continuous(high=2.0): None,
    Continuous(): None,
    Counts(): None,
}
MOVING = [
    Continuous(),
    Continuous(quantiles=(0.0, 1.0), asked=4, bin_edges=3),
    Continuous(quantiles=(0.3, 0.55), asked=3, bin_edges=2),
    Counts(),
    Counts(quantiles=(0.25, 0.75), asked=5, bin_edges=7),
]


def encoded_by(scale, rewards, weight=None):
    """The encoding of one replica."""
    reward = np.array([rewards], dtype=np.float64)
    given = np.ones(reward.shape) if weight is None else np.array([weight], dtype=np.float64)
    return scale.reward_encoding(reward, given)


def slow_quantile(pairs, share):
    """The first reward up to which at least this share of the weight lies."""
    pairs = sorted(pairs)
    total, so_far = sum(weight for _, weight in pairs), 0.0
    for reward, weight in pairs:
        so_far += weight
        if so_far >= share * total - 1e-9 * total:
            return reward
    raise AssertionError


def padded(values):
    """Each once, and the lowest in the places that are left."""
    different = sorted(set(values))
    return [different[0]] * (len(values) - len(different)) + different


def slow_levels(pairs, scale):
    shares = np.linspace(*scale.quantiles, scale.asked)
    asked = [slow_quantile(pairs, share) for share in shares]
    if asked[0] == asked[-1]:
        above = [pair for pair in pairs if pair[0] > asked[0]]
        below = [pair for pair in pairs if pair[0] < asked[0]]
        if above:
            asked = [asked[0], *(slow_quantile(above, share) for share in shares[1:])]
        elif below:
            asked = [*(slow_quantile(below, share) for share in shares[:-1]), asked[0]]
    return padded(asked)


def slow_bin_edges(pairs, scale):
    different = [(reward, 1.0) for reward in {reward for reward, _ in pairs}]
    return padded([slow_quantile(different, share) for share in np.linspace(0, 1, scale.bin_edges)])


def some_rewards(kind, shape, rng):
    """Rewards that are all different, mostly ties, and mostly zero."""
    if kind == "different":
        return np.floor(1e6 * rng.random(shape))
    if kind == "few":
        return rng.integers(3, size=shape).astype(np.float64)
    return np.where(rng.random(shape) < 0.95, 0.0, rng.poisson(3.0, size=shape))


@pytest.mark.parametrize("scale", CONTAINED, ids=repr)
def test_it_contains_what_can_occur(scale):
    inside, outside = CONTAINED[scale]
    assert scale.contains(np.array(inside)).all()
    assert not scale.contains(np.array(outside)).any()
    scale.check(np.array([inside]))
    for stranger in outside:
        with pytest.raises(InputError) as refusal:
            scale.check(np.array([[*inside, stranger]]))
        assert str(refusal.value) == f"a reward of {scale} cannot be {stranger:.12g}"


@pytest.mark.parametrize("scale", BOUNDS, ids=repr)
def test_bounds_are_known_or_not(scale):
    assert scale.bounds == BOUNDS[scale]
    if scale.bounds is None:
        with pytest.raises(InputError) as refusal:
            scale.known_bounds("someone")
        assert str(refusal.value) == (
            f"someone needs to know the lowest and the highest reward, and {scale} does not say: "
            "use a scale with both, such as Continuous(low=0.0, high=1.0)"
        )
    else:
        assert scale.known_bounds("someone") == BOUNDS[scale]


@pytest.mark.parametrize(
    ("scale", "levels"),
    [
        (Binary(), [0.0, 1.0]),
        (Discrete((-1.0, 0.0, 2.0)), [-1.0, 0.0, 2.0]),
        (Discrete((1.0, 2.0, 3.0, 4.0, 5.0), asked=3), [1.0, 3.0, 5.0]),
        (Discrete((1.0, 2.0, 3.0, 4.0, 5.0), asked=2), [1.0, 5.0]),
        (Discrete((0.0, 1.0, 5.0, 9.0), asked=4), [0.0, 1.0, 5.0, 9.0]),
    ],
    ids=repr,
)
def test_fixed_levels_are_there_whatever_is_observed(scale, levels, seed):
    assert not scale.moves
    assert scale.levels == scale.width == len(levels)
    for rows in (0, 7):
        encoding = scale.reward_encoding(
            np.random.default_rng(seed).normal(size=(3, rows)), np.ones((3, rows))
        )
        assert np.array_equal(encoding.levels, [levels] * 3)
        assert np.array_equal(encoding.bin_edges, [levels] * 3)


@pytest.mark.parametrize("kind", ["different", "few", "mostly zero"])
@pytest.mark.parametrize("scale", MOVING, ids=repr)
def test_moving_levels_are_weighted_quantiles_of_each_replica(scale, kind, seed):
    rng = np.random.default_rng(seed)
    shape = (20, 30)
    reward = some_rewards(kind, shape, rng)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], size=shape)
    # Weights of which no sum is a share of another: nothing is decided by rounding.
    weight *= rng.uniform(0.9, 1.1, size=shape)
    weight[0] = 0.0
    assert scale.moves
    encoding = scale.reward_encoding(reward, weight)
    assert encoding.levels.shape == (20, scale.levels)
    assert encoding.bin_edges.shape == (20, scale.width)
    assert not encoding.levels[0].any()
    assert not encoding.bin_edges[0].any()
    for replica in range(1, 20):
        there = weight[replica] > 0
        pairs = list(zip(reward[replica][there], weight[replica][there], strict=True))
        assert encoding.levels[replica].tolist() == slow_levels(pairs, scale)
        assert encoding.bin_edges[replica].tolist() == slow_bin_edges(pairs, scale)


@pytest.mark.parametrize("scale", MOVING, ids=repr)
def test_rows_of_weight_0_and_the_order_of_rows_change_nothing(scale, seed):
    rng = np.random.default_rng(seed)
    reward = rng.poisson(2.0, size=(3, 25)).astype(np.float64)
    weight = rng.choice([1.0, 2.0], size=(3, 25))
    expected = scale.reward_encoding(reward, weight)
    absent = np.tile([np.nan, np.inf, -np.inf, 1e9, -1e9], (3, 1))
    more = np.concatenate([absent, reward, absent], axis=1)
    counted = np.concatenate([np.zeros((3, 5)), weight, np.zeros((3, 5))], axis=1)
    order = rng.permutation(35)
    for found in (
        scale.reward_encoding(more, counted),
        scale.reward_encoding(more[:, order], counted[:, order]),
    ):
        assert np.array_equal(found.levels, expected.levels)
        assert np.array_equal(found.bin_edges, expected.bin_edges)


@pytest.mark.parametrize("scale", MOVING, ids=repr)
def test_before_the_first_reward_all_levels_are_0(scale):
    for rows in (0, 4):
        encoding = scale.reward_encoding(np.full((2, rows), np.nan), np.zeros((2, rows)))
        assert np.array_equal(encoding.levels, np.zeros((2, scale.levels)))
        assert np.array_equal(encoding.bin_edges, np.zeros((2, scale.width)))


@pytest.mark.parametrize("scale", MOVING, ids=repr)
@pytest.mark.parametrize("rewards", [[0.0] * 95 + [3.0] * 5, [0.0] * 5 + [3.0] * 95], ids=str)
def test_rare_rewards_are_still_a_level_of_their_own(scale, rewards):
    encoding = encoded_by(scale, rewards)
    assert encoding.levels[0, 0] == 0.0
    assert encoding.levels[0, -1] == 3.0
    place = encoding.nearest(np.array([rewards]))
    assert set(place.ravel()) == {0, scale.levels - 1}


@pytest.mark.parametrize("scale", MOVING, ids=repr)
def test_fewer_values_than_levels_leave_the_first_and_the_last_seen(scale):
    rewards = [1.0, 1.0, 4.0, 4.0, 4.0, 9.0]
    encoding = encoded_by(scale, rewards)
    levels = encoding.levels[0].tolist()
    assert levels == padded(levels)
    assert set(levels) <= set(rewards)
    place = encoding.nearest(np.array([rewards]))
    assert {0, scale.levels - 1} <= set(place.ravel())
    # Levels that stand again have no rewards of their own.
    again = {one for one in range(1, scale.levels) if levels[one] == levels[0]}
    assert not again & set(place.ravel())


@pytest.mark.parametrize("listing_limit", [1, 4096])
@pytest.mark.parametrize("scale", [*MOVING, Discrete((0.0, 7.0))], ids=repr)
def test_where_all_rewards_are_equal_the_policy_is_uniform(scale, listing_limit, seed):
    problem = Problem(Arms(3), scale=scale)
    feedback = some_feedback(problem, 2, 20, seed)._replace(reward=np.full((2, 20), 7.0))
    policy, rng = RewardConditioned(Counting(), SubMax(), listing_limit), np.random.default_rng(0)
    state = policy.update(policy.init(problem, 2, rng), feedback, rng)
    levels = Counting().belief(state.params, np.zeros((2, 1, 0))).levels()
    assert np.all(levels[:, -1] == 7.0)
    assert np.all(levels == 7.0) == scale.moves
    context = np.zeros((2, 3, 0))
    assert np.allclose(policy.probabilities(state, context), 1 / 3)
    action = policy.act(state, context, rng).action
    assert np.allclose(policy.log_prob(state, context, action), -np.log(3))


def test_levels_of_counts_are_observed_whole_numbers(seed):
    rng = np.random.default_rng(seed)
    reward = rng.poisson(4.0, size=(50, 40)).astype(np.float64)
    scale = Counts(asked=4)
    encoding = scale.reward_encoding(reward, rng.uniform(0.1, 2.0, size=reward.shape))
    for replica in range(50):
        assert set(encoding.levels[replica]) <= set(reward[replica])
        assert set(encoding.bin_edges[replica]) <= set(reward[replica])
    assert scale.contains(encoding.levels).all()


@pytest.mark.parametrize("scale", MOVING, ids=repr)
def test_replicas_do_not_reach_one_another(scale, seed):
    rng = np.random.default_rng(seed)
    reward, weight = rng.normal(size=(4, 15)), rng.uniform(0.1, 2.0, size=(4, 15))
    encoding = scale.reward_encoding(reward, weight)
    for replica in range(4):
        alone = encoded_by(scale, reward[replica], weight[replica])
        assert np.array_equal(encoding.levels[replica], alone.levels[0])
        assert np.array_equal(encoding.bin_edges[replica], alone.bin_edges[0])


@pytest.mark.parametrize(
    ("kind", "settings", "sentence"),
    [
        (Discrete, {"values": (0.0,)}, "values must be a tuple of two rewards or more, not (0.0,)"),
        (Discrete, {"values": ()}, "values must be a tuple of two rewards or more, not ()"),
        (Discrete, {"values": (0.0, np.nan)}, "each of values must be a finite number, not nan"),
        (Discrete, {"values": (0.0, np.inf)}, "each of values must be a finite number, not inf"),
        (Discrete, {"values": "12"}, "values must be a tuple of two rewards or more, not '12'"),
        (Discrete, {"values": (1.0, 0.0)}, "values must rise from lowest to highest, not (1.0, 0"),
        (Discrete, {"values": (0.0, 0.0)}, "values must rise from lowest to highest, not (0.0, 0"),
        (Discrete, {"values": (0.0, 1.0), "asked": 1}, "asked must be a whole number, at least 2"),
        (Discrete, {"values": (0.0, 1.0), "asked": 3}, "asked must be at most 2, not 3"),
        (
            Continuous,
            {"low": -np.inf},
            "low, if it is given, must be a finite",
        ),
        (
            Continuous,
            {"high": np.inf},
            "high, if it is given, must be a finite",
        ),
        (Continuous, {"low": np.nan}, "low, if it is given, must be a finite number, not nan"),
        (Continuous, {"low": 1.0, "high": 1.0}, "low must be below high, not 1.0 and 1.0"),
        (Continuous, {"low": 2.0, "high": 1.0}, "low must be below high, not 2.0 and 1.0"),
        (Continuous, {"quantiles": (0.9, 0.1)}, "quantiles must rise from low to high, not (0.9"),
        (Continuous, {"quantiles": (0.5, 0.5)}, "quantiles must rise from low to high, not (0.5"),
        (Continuous, {"quantiles": (-0.1, 0.5)}, "each of quantiles must be a number between 0"),
        (Continuous, {"quantiles": (0.5, 1.1)}, "each of quantiles must be a number between 0"),
        (Continuous, {"quantiles": (0.5, np.nan)}, "each of quantiles must be a number between 0"),
        (
            Continuous,
            {"quantiles": (0.5,)},
            "quantiles must be a tuple of two probabilities, low and high, not",
        ),
        (Continuous, {"asked": 1}, "asked must be a whole number, at least 2, not 1"),
        (Continuous, {"bin_edges": 1}, "bin_edges must be a whole number, at least 2, not 1"),
        (Counts, {"quantiles": (0.9, 0.1)}, "quantiles must rise from low to high, not (0.9, 0.1)"),
        (Counts, {"asked": 2.5}, "asked must be a whole number, at least 2, not 2.5"),
        (Counts, {"bin_edges": 0}, "bin_edges must be a whole number, at least 2, not 0"),
    ],
    ids=str,
)
def test_bad_settings_are_refused(kind, settings, sentence):
    with pytest.raises(InputError) as refusal:
        kind(**settings)
    assert sentence in str(refusal.value)
