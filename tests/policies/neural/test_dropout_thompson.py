import numpy as np
import pytest
from refusals import raises_code

from submax.policies.neural.dropout_thompson import DropoutThompson
from submax.testing.rules.examples import some_contexts
from submax.testing.rules.goodness_of_fit import SMALLEST_P_VALUE, goodness_of_fit

pytestmark = pytest.mark.xdist_group("ValueBelief")


@pytest.fixture
def policy(training):
    return DropoutThompson(0.3, masks=40, hidden=8, training=training)


@pytest.fixture(scope="module")
def state(learned, training):
    return learned(DropoutThompson(0.3, masks=40, hidden=8, training=training))


def test_the_probability_is_the_share_of_masks(policy, state, problem, table, value, seed):
    context = some_contexts(problem, 4, 3, seed)
    found = table(policy, state, context)
    for replica, row in np.ndindex(4, 3):
        expected = np.zeros(3)
        for mask in range(40):
            masks = state.first[replica, mask], state.second[replica, mask]
            values = np.array(
                [
                    value(state.belief.network, replica, context[replica, row], arm, *masks)
                    for arm in range(3)
                ]
            )
            best = np.isclose(values, values.max(), rtol=1e-6, atol=1e-6)
            expected += best / best.sum() / 40
        assert np.allclose(found[replica, row], expected)


def test_decisions_follow_the_share_of_masks(policy, state, problem, table, seed):
    context = some_contexts(problem, 4, 1, seed)
    probabilities = table(policy, state, context)
    decision = policy.act(state, np.repeat(context, 2000, axis=1), np.random.default_rng((seed, 7)))
    for replica in range(4):
        drawn, expected = decision.action[replica], probabilities[replica, 0]
        assert goodness_of_fit(drawn, expected) > SMALLEST_P_VALUE


def test_all_actions_of_a_decision_share_one_mask(problem, seed):
    # Every unit counts double for arm 0: with a mask of its own another arm would win at times.
    policy = DropoutThompson(0.5, masks=200, hidden=8)
    rng = np.random.default_rng(seed)
    state = policy.init(problem, 2, rng)
    network = state.belief.network
    units = np.zeros_like(network.choice_weight) + np.array([2.0, 1.0, 1.0])[:, None]
    network = network._replace(
        choice_weight=units.astype(np.float32),
        second_weight=np.tile(np.eye(8, dtype=np.float32), (2, 1, 1)),
        head_weight=np.ones((2, 8), dtype=np.float32),
    )
    first, second = state.first.copy(), state.second.copy()
    first[..., 0] = second[..., 0] = 2.0  # one unit is always there
    state = state._replace(
        belief=state.belief._replace(network=network), first=first, second=second
    )
    context = np.zeros((2, 500, 2))
    assert np.all(policy.act(state, context, rng).action == 0)
    assert np.all(policy.log_prob(state, context, np.zeros((2, 500, 1), dtype=np.int64)) == 0)


def test_masks_are_drawn_anew_at_each_refit_and_kept_between(policy, state, problem, seed):
    kept = np.mean(state.first > 0)
    assert set(np.unique(state.first)) == {0.0, np.float32(1 / 0.7)}
    # 4 × 40 × 8 units, each kept with chance 0.7.
    assert abs(kept - 0.7) < 6 * np.sqrt(0.21 / state.first.size)
    context = some_contexts(problem, 4, 6, seed)
    action = np.zeros((4, 6, 1), dtype=np.int64)
    before = policy.log_prob(state, context, action)
    policy.act(state, context, np.random.default_rng(seed))
    assert np.array_equal(policy.log_prob(state, context, action), before)
    other = policy.init(problem, 4, np.random.default_rng((seed, 8)))
    assert not np.array_equal(other.first, state.first)


def test_without_dropout_it_is_greedy(state, problem, training, table, seed):
    policy = DropoutThompson(0.0, masks=3, hidden=8, training=training)
    ones = np.ones((4, 3, 8), dtype=np.float32)
    certain = state._replace(first=ones, second=ones)
    context = some_contexts(problem, 4, 6, seed)
    best = state.belief.logits(context).argmax(axis=-1)
    assert np.array_equal(table(policy, certain, context), np.eye(3)[best])


def test_it_learns_which_arm_suits_which_context(policy, state, earned):
    assert earned(policy, state) > 0.5


@pytest.mark.parametrize(("name", "value"), [("dropout", 1.5), ("masks", 0), ("hidden", 0)])
def test_bad_parameters_are_refused(name, value):
    with raises_code("invalid-input"):
        DropoutThompson(**{name: value})
