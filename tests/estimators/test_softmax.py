import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError, MissingExtraError
from submax.core.memory.training import Training
from submax.core.rewards.counts import Counts
from submax.core.running import extras
from submax.core.spaces.arms import Arms
from submax.estimators.softmax import Softmax
from submax.models.networks.slot_network import INJECTION_FORMS
from submax.testing.rules.examples import some_contexts, some_feedback
from submax.testing.rules.goodness_of_fit import SMALLEST_P_VALUE, goodness_of_fit

pytestmark = pytest.mark.xdist_group("Softmax")

PROBLEM = Problem(Arms(3), context_width=1)
REPLICAS = 2
ESTIMATOR = Softmax(hidden=16, training=Training(steps=400, batch=128, learning_rate=0.01))

# p(a | c, r) for a context of −1 and of 1, and both levels.
TRUTH = np.array([[[0.1, 0.2, 0.7], [0.8, 0.1, 0.1]], [[0.6, 0.3, 0.1], [0.1, 0.7, 0.2]]])


def values_of(estimator, params):
    nowhere = np.zeros((len(params.level_share), 1, params.problem.context_width))
    return estimator.belief(params, nowhere).values()


def levels_of(estimator, params):
    nowhere = np.zeros((len(params.level_share), 1, params.problem.context_width))
    return estimator.belief(params, nowhere).levels()


def known_feedback(rows, seed):
    """Actions drawn from the known probabilities."""
    rng = np.random.default_rng((seed, 4))
    shape = (REPLICAS, rows)
    side, level = rng.integers(2, size=shape), rng.integers(2, size=shape)
    uniform = rng.random(shape)
    action = (uniform[..., None] > TRUTH[side, level].cumsum(axis=-1)[..., :2]).sum(axis=-1)
    context = (2.0 * side - 1)[..., None]
    log_prob = np.log(rng.uniform(0.2, 1.0, size=shape))
    return Feedback(context, action[..., None], level.astype(float), log_prob, np.ones(shape))


@pytest.fixture(scope="module")
def feedback(seed):
    return known_feedback(2000, seed)


@pytest.fixture(scope="module")
def fitted(feedback, seed):
    rng = np.random.default_rng(seed)
    return ESTIMATOR.fit(ESTIMATOR.init(PROBLEM, REPLICAS, rng), feedback, rng)


def test_before_the_first_feedback_everything_is_uniform(seed):
    params = ESTIMATOR.init(PROBLEM, REPLICAS, np.random.default_rng(seed))
    context = some_contexts(PROBLEM, REPLICAS, 4, seed)
    assert np.allclose(ESTIMATOR.belief(params, context).prob_of_all(), 1 / 3)
    assert np.array_equal(
        ESTIMATOR.belief(params, context).level_prior(), np.full((REPLICAS, 4, 2), 0.5)
    )
    assert np.array_equal(values_of(ESTIMATOR, params), np.zeros((REPLICAS, 2)))
    drawn = ESTIMATOR.belief(params, context).sample(1, 2000, np.random.default_rng(seed))
    assert goodness_of_fit(drawn[0, 0, :, 0], np.full(3, 1 / 3)) > SMALLEST_P_VALUE


def test_it_learns_known_probabilities(fitted):
    context = np.broadcast_to(np.array([-1.0, 1.0])[:, None], (REPLICAS, 2, 1))
    found = ESTIMATOR.belief(fitted, context).prob_of_all()
    # 500 rows in each of four cells: a standard error of 0.02, and as much from the last steps.
    # Uniform probabilities are 0.47 off, those of the other level or context 0.5.
    assert np.abs(found - TRUTH).max() < 0.2


def test_draws_follow_the_probabilities(fitted, seed):
    rng = np.random.default_rng(seed)
    context = np.broadcast_to(np.array([-1.0, 1.0])[:, None], (REPLICAS, 2, 1))
    expected = ESTIMATOR.belief(fitted, context).prob_of_all()
    for level in range(2):
        drawn = ESTIMATOR.belief(fitted, context).sample(level, 4000, rng)
        for replica, row in np.ndindex(REPLICAS, 2):
            p_value = goodness_of_fit(drawn[replica, row, :, 0], expected[replica, row, level])
            assert p_value > SMALLEST_P_VALUE


def test_probabilities_are_softmaxes_of_the_logits(fitted, seed):
    context = some_contexts(PROBLEM, REPLICAS, 3, seed)
    logits = fitted.network.logits(context)[:, :, :, 0].astype(float)
    mass = np.exp(logits)
    expected = (mass / mass.sum(axis=-1, keepdims=True)).swapaxes(1, 2)
    found = ESTIMATOR.belief(fitted, context).prob_of_all()
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    listing = PROBLEM.space.listing()[None, None]
    np.testing.assert_allclose(ESTIMATOR.belief(fitted, context).prob(listing), expected, rtol=1e-5)


def test_values_are_the_direct_sums(fitted, feedback):
    taken = feedback.action[:, :, None]
    policy = ESTIMATOR.belief(fitted, feedback.context).prob(taken)[..., 0]
    ratio = feedback.reward / np.exp(feedback.log_prob)
    found = values_of(ESTIMATOR, fitted)
    for replica, level in np.ndindex(REPLICAS, 2):
        expected = sum(ratio[replica, row] * policy[replica, row, level] for row in range(2000))
        np.testing.assert_allclose(found[replica, level], expected / 2000, rtol=1e-6)


def test_many_rows_are_valued_in_parts(fitted, monkeypatch):
    whole = values_of(ESTIMATOR, fitted)
    numbers = "submax.estimators.importance_values.NUMBERS_PER_PART"
    monkeypatch.setattr(numbers, 7 * REPLICAS * 2 * 16)
    np.testing.assert_allclose(values_of(ESTIMATOR, fitted), whole, rtol=1e-6)


def test_levels_occur_as_often_as_they_were_observed(fitted, feedback):
    share = feedback.reward.mean(axis=1)
    found = ESTIMATOR.belief(fitted, np.zeros((REPLICAS, 3, 1))).level_prior()
    np.testing.assert_allclose(found[..., 1], np.repeat(share[:, None], 3, axis=1))
    np.testing.assert_allclose(found.sum(axis=-1), 1.0)


def test_without_new_rows_nothing_changes(fitted, feedback, seed):
    nothing = feedback._replace(weight=np.zeros_like(feedback.weight))
    assert ESTIMATOR.fit(fitted, nothing, np.random.default_rng(seed)) is fitted


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"hidden": 0}, "hidden must be a whole number, at least 1, not 0"),
        ({"hidden": 2.5}, "hidden must be a whole number, at least 1, not 2.5"),
        ({"injection": "modulatoin"}, "unknown injection 'modulatoin': did you mean 'modulation'?"),
        (
            {"injection": ""},
            "unknown injection '': allowed: concatenation, gate, input-concatenation, modulation",
        ),
    ],
    ids=str,
)
def test_bad_settings_are_refused(settings, sentence):
    with pytest.raises(InputError) as error:
        Softmax(**settings)
    assert sentence in str(error.value)


def test_bad_feedback_is_refused(seed):
    good = some_feedback(PROBLEM, REPLICAS, 4, seed)
    lost, strange = good.context.copy(), good.action.copy()
    lost[1, 2, 0] = np.nan
    strange[0, 3, 0] = 3
    fresh = ESTIMATOR.init(PROBLEM, REPLICAS, np.random.default_rng(seed))
    cases = {
        "context must be finite": good._replace(context=lost),
        "an action does not belong to the space": good._replace(action=strange),
        "weight must be finite": good._replace(weight=np.full((REPLICAS, 4), np.nan)),
        "context has shape": good._replace(context=np.zeros((REPLICAS, 4, 2))),
    }
    for sentence, bad in cases.items():
        with raises_code("invalid-input"):
            ESTIMATOR.fit(fresh, bad, np.random.default_rng(seed))


def test_without_jax_the_extra_is_named(monkeypatch, seed):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as error:
        ESTIMATOR.init(PROBLEM, 1, np.random.default_rng(seed))
    assert "the Softmax estimator needs jax, equinox, optax" in str(error.value)
    assert 'pip install "submax[neural]"' in str(error.value)


def test_without_context_it_learns_too(seed):
    problem, rng = Problem(Arms(3)), np.random.default_rng(seed)
    action = rng.integers(3, size=(1, 2000, 1))
    reward = (rng.random((1, 2000)) < np.array([0.1, 0.5, 0.9])[action[..., 0]]).astype(float)
    feedback = Feedback(np.zeros((1, 2000, 0)), action, reward, None, np.ones((1, 2000)))
    params = ESTIMATOR.fit(ESTIMATOR.init(problem, 1, rng), feedback, rng)
    found = ESTIMATOR.belief(params, np.zeros((1, 1, 0))).prob_of_all()[0, 0]
    expected = np.array([[0.9, 0.5, 0.1], [0.1, 0.5, 0.9]]) / 1.5
    assert np.abs(found - expected).max() < 0.1


COUNTS = Problem(Arms(2), scale=Counts())


def counted(rewards, rng):
    """Arm 1 pays 2 and more, arm 0 pays less."""
    reward = np.array(rewards, dtype=float)[None]
    action = (reward >= 2).astype(np.int64)[..., None]
    return Feedback(np.zeros((*reward.shape, 0)), action, reward, None, np.ones(reward.shape))


@pytest.mark.parametrize("injection", INJECTION_FORMS)
def test_going_on_with_other_bin_edges_begins_where_training_ended(injection, seed):
    rng = np.random.default_rng(seed)
    training = Training(steps=300, batch=64, learning_rate=0.01, continued=True)
    first = Softmax(hidden=16, injection=injection, training=training)
    params = first.fit(first.init(COUNTS, 1, rng), counted(rng.integers(4, size=400), rng), rng)
    slight = Training(steps=1, batch=1, learning_rate=1e-9, continued=True)
    then = Softmax(hidden=16, injection=injection, training=slight)
    after = then.fit(params, counted([4.0], rng), rng)
    assert params.reward_encoding.bin_edges.tolist() == [[0, 0, 1, 2, 3]]
    assert after.reward_encoding.bin_edges.tolist() == [[0, 1, 2, 3, 4]]
    rewards, nothing = np.array([[0.0, 1.0, 2.0, 3.0]]), np.zeros((1, 1, 0))
    before, found = (
        first.belief(first.at_levels(one, rewards), nothing).prob_of_all()
        for one in (params, after)
    )
    np.testing.assert_allclose(found, before, atol=1e-5)
    assert before[0, 0, 0, 0] > 0.9
    assert before[0, 0, 3, 1] > 0.9


def test_what_was_asked_for_other_rewards_can_learn_on(fitted, feedback, seed):
    asked = ESTIMATOR.at_levels(fitted, np.tile([0.0, 0.5, 1.0], (REPLICAS, 1)))
    assert levels_of(ESTIMATOR, asked).shape == (REPLICAS, 3)
    after = ESTIMATOR.fit(asked, feedback, np.random.default_rng(seed))
    assert levels_of(ESTIMATOR, after).tolist() == [[0.0, 1.0]] * REPLICAS


def test_a_replica_that_heard_nothing_stays_uniform_at_other_rewards(feedback, seed):
    rng = np.random.default_rng(seed)
    weight = feedback.weight.copy()
    weight[0] = 0.0
    heard = feedback._replace(weight=weight)
    params = ESTIMATOR.fit(ESTIMATOR.init(PROBLEM, REPLICAS, rng), heard, rng)
    asked = ESTIMATOR.at_levels(params, np.tile([0.2, 0.7], (REPLICAS, 1)))
    context = some_contexts(PROBLEM, REPLICAS, 3, seed)
    found = ESTIMATOR.belief(asked, context).prob_of_all()
    assert np.allclose(found[0], 1 / 3)
    assert not np.allclose(found[1], 1 / 3, atol=0.01)


@pytest.mark.parametrize("levels", [[[np.nan, 1.0]] * 2, [[1.0, 0.0]] * 2, [[0.0, 1.0]], [[]] * 2])
def test_rewards_that_cannot_be_asked_for_are_refused(levels, fitted):
    with raises_code("invalid-input"):
        ESTIMATOR.at_levels(fitted, np.array(levels))
