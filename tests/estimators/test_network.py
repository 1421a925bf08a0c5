"""Networks that learn known probabilities, and what is special to the Softmax and the CVAE."""

import warnings
from dataclasses import replace

import jax
import numpy as np
import pytest
from refusals import raises_code

from submax import Arms, Box, Continuous, Counts, Feedback, Problem, Slots, Training
from submax.core import optional as extras
from submax.core.errors import DivergedWarning
from submax.estimators.counting import Counting
from submax.estimators.network import CVAE, Softmax
from submax.models.memory import NUMBERS_PER_PART, Memory, importance_values
from submax.models.networks.choices import INJECTION_FORMS
from submax.models.nn.reward_injection import Injection
from submax.models.nn.training import restored
from submax.policies.reward_conditioned import RewardConditioned
from submax.strategies.weighted import SubMax
from submax.testing.problems import some_contexts

softmax = pytest.mark.xdist_group("Softmax")
cvae = pytest.mark.xdist_group("CVAE")

REPLICAS = 2
SOFTMAX = Softmax(hidden=16, training=Training(steps=400, batch=128, learning_rate=0.01))
THREE_ARMS = Problem(Arms(3), context_width=1)
LONGER = Training(steps=600, batch=128, learning_rate=0.01)
DEPENDENT = CVAE(hidden=16, latent=2, draws=40, kl_weight=1.0, training=LONGER)
PROBLEM = Problem(Slots((2, 3)), context_width=1)

# p(a | c, r) for a context of −1 and of 1, and both levels.
TRUTH = np.array([[[0.1, 0.2, 0.7], [0.8, 0.1, 0.1]], [[0.6, 0.3, 0.1], [0.1, 0.7, 0.2]]])
# One joint action has 3/4, and the others share the rest: slots depend on each other.
FAVOURITES = np.where(np.arange(6) == np.array([[0, 4], [5, 1]])[..., None], 0.75, 0.05)


def learned(estimator, problem, truth, seed):
    """What is learned from 2000 actions drawn from known probabilities."""
    rng = np.random.default_rng((seed, 4))
    shape = (REPLICAS, 2000)
    side, level = rng.integers(2, size=shape), rng.integers(2, size=shape)
    uniform = rng.random(shape)
    index = (uniform[..., None] > truth[side, level].cumsum(axis=-1)[..., :-1]).sum(axis=-1)
    context = (2.0 * side - 1)[..., None]
    log_prob = np.log(rng.uniform(0.2, 1.0, size=shape))
    action = problem.space.action(index)
    feedback = Feedback(context, action, level.astype(float), log_prob, np.ones(shape))
    rng = np.random.default_rng(seed)
    return estimator.fit(estimator.init(problem, REPLICAS, rng), feedback, rng)


@pytest.mark.parametrize(
    ("estimator", "problem", "truth"),
    [
        pytest.param(SOFTMAX, THREE_ARMS, TRUTH, marks=softmax),
        pytest.param(DEPENDENT, PROBLEM, FAVOURITES, marks=cvae),
    ],
    ids=["softmax", "cvae"],
)
def test_it_learns_known_probabilities(estimator, problem, truth, seed):
    context = np.broadcast_to(np.array([-1.0, 1.0])[:, None], (REPLICAS, 2, 1))
    params = learned(estimator, problem, truth, seed)
    found = estimator.belief(params, context).prob_of_all()
    apart = np.abs(found - truth)
    if estimator is SOFTMAX:
        # 500 rows in each of four cells: a standard error of 0.02, and as much from the last
        # steps. Uniform probabilities are 0.47 off, those of the other level or context 0.5.
        assert apart.max() < 0.2
    # Without any learning half the absolute distance is 0.58, with levels or contexts mixed up
    # 0.7 and more. What is independent between slots is at 0.15, so 0.3 is far from both.
    assert np.all(apart.sum(axis=-1) / 2 < 0.3)
    assert np.array_equal(found.argmax(axis=-1), np.tile(truth.argmax(axis=-1), (REPLICAS, 1, 1)))


@pytest.mark.parametrize("estimator", [Softmax(), CVAE()], ids=repr)
def test_without_jax_the_extra_is_named(estimator, monkeypatch, seed):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with raises_code("missing-extra") as refused:
        estimator.init(Problem(Arms(2)), 1, np.random.default_rng(seed))
    assert "submax[neural]" in str(refused.value)


@pytest.mark.parametrize("estimator", [Counting(0.0), Counting(1.0), Softmax(), CVAE()], ids=repr)
def test_before_the_first_feedback_everything_is_uniform(estimator, seed):
    params = estimator.init(PROBLEM, 2, np.random.default_rng(seed))
    belief = estimator.belief(params, np.zeros((2, 4, 1)))
    np.testing.assert_allclose(belief.prob_of_all(), 1 / 6)
    assert np.array_equal(belief.level_prior(), np.full((2, 4, 2), 0.5))
    assert np.array_equal(belief.values(), np.zeros((2, 2)))


@softmax
def test_rows_that_are_too_many_at_once_are_valued_in_parts(seed):
    params = learned(SOFTMAX, THREE_ARMS, TRUTH, seed)
    found = importance_values(SOFTMAX, params, NUMBERS_PER_PART // 7)
    whole = SOFTMAX.belief(params, np.zeros((REPLICAS, 1, 1))).values()
    np.testing.assert_allclose(found, whole, rtol=1e-6)


COUNTS = Problem(Arms(2), scale=Counts())


def counted(rewards, rng):
    """Arm 1 pays 2 and more, arm 0 pays less."""
    reward = np.array(rewards, dtype=float)[None]
    action = (reward >= 2).astype(np.int64)[..., None]
    return Feedback(np.zeros((*reward.shape, 0)), action, reward, None, np.ones(reward.shape))


@softmax
@pytest.mark.parametrize(
    "injection",
    [
        pytest.param(form, marks=() if form == "modulation" else pytest.mark.soak)
        for form in INJECTION_FORMS
    ],
)
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

    def asked(params):
        encoding = params.reward_encoding._replace(levels=rewards)
        network = first.written(COUNTS, params.parameters, encoding, params.latent)
        at_rewards = params._replace(network=network, reward_encoding=encoding)
        return first.belief(at_rewards, nothing).prob_of_all()

    before, found = asked(params), asked(after)
    np.testing.assert_allclose(found, before, atol=1e-5)
    assert before[0, 0, 0, 0] > 0.9
    assert before[0, 0, 3, 1] > 0.9


LARGE_FEATURES = Problem(Arms(2), context_width=4)
TRAINING = Training(learning_rate=0.01, batch=64)


def some_feedback(rows, seed):
    """Features: one of size 1e6, which says what arm pays, a constant, a heavy and a plain one."""
    rng, shape = np.random.default_rng((seed, 9)), (REPLICAS, rows)
    large = 1e6 * rng.normal(size=shape) + 1e7
    heavy = rng.normal(size=shape) * np.where(rng.random(shape) < 0.01, 1e4, 1.0)
    context = np.stack([large, np.full(shape, 7.0), heavy, rng.normal(size=shape)], axis=-1)
    action = rng.integers(2, size=shape)
    reward = (action == (large > 1e7)).astype(float)
    return Feedback(context, action[..., None], reward, np.full(shape, -np.log(2)), np.ones(shape))


@softmax
def test_contexts_far_out_and_unscaled_do_not_make_the_loss_of_a_cvae_infinite(seed):
    rng = np.random.default_rng(seed)
    feedback = some_feedback(200, seed)
    estimator = CVAE(hidden=16, latent=2, training=Training(steps=20, batch=64))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DivergedWarning)
        estimator.fit(estimator.init(LARGE_FEATURES, REPLICAS, rng), feedback, rng)


@softmax
@pytest.mark.parametrize("memory", [Memory(), Memory(window=150)], ids=repr)
def test_a_memory_that_forgets_begins_anew(memory, seed):
    """Rows change their place in it, so that rows trained on before may be held out now."""
    feedback = some_feedback(200, seed)
    estimator = Softmax(hidden=16, training=TRAINING, memory=memory)
    rng = np.random.default_rng(seed)
    params = estimator.init(LARGE_FEATURES, REPLICAS, rng)
    params = estimator.fit(params, feedback.rows(slice(0, 180)), rng)
    networks = [
        estimator.fit(
            one, feedback.rows(slice(180, 200)), np.random.default_rng(seed)
        ).network.head_weight
        for one in (params, params._replace(parameters=0.5 * params.parameters))
    ]
    assert np.array_equal(*networks) == memory.forgets


# The CVAE


def with_equal_levels(estimator, seed):
    """A network whose modulation is zero, as it is at first, and nothing else."""
    design = estimator.design(PROBLEM)
    leaves = jax.tree.leaves(design.drawn(np.random.default_rng(0)))
    size = sum(leaf.size for leaf in leaves)
    rng = np.random.default_rng(seed)
    model = restored(design, rng.normal(size=(REPLICAS, size)).astype(np.float32))
    model = jax.tree.map(
        lambda part: (
            Injection(part.dense, 0 * part.scale, 0 * part.shift, part.form)
            if isinstance(part, Injection)
            else part
        ),
        model,
        is_leaf=lambda part: isinstance(part, Injection),
    )
    levels = np.broadcast_to(np.eye(2, dtype=np.float32), (REPLICAS, 2, 2))
    latent = estimator.drawn(PROBLEM, REPLICAS, rng)
    return model.exported(levels, latent)


@cvae
@pytest.mark.parametrize("shared", [True, False], ids=["shared draws", "draws a level"])
def test_equal_levels_are_equal_exactly_where_they_share_their_draws(shared, seed):
    estimator = CVAE(hidden=16, latent=2, draws=5, shared_draws=shared)
    network = with_equal_levels(estimator, seed)
    rng = np.random.default_rng(seed)
    params = estimator.init(PROBLEM, REPLICAS, rng)._replace(network=network)
    context = some_contexts(PROBLEM, REPLICAS, 4, seed)
    low, high = np.moveaxis(estimator.belief(params, context).prob_of_all(), 2, 0)
    if shared:
        assert np.array_equal(low, high)
    else:
        assert np.abs(high - low).max() > 1e-3


# From −2 to 6; where rewards are 0 or 1, they are 1 with the same numbers as chances.
BOX, MIXED = Box((-2.0,), (6.0,)), Box((-2.0,), (6.0,), (2,))
GOOD, BAD = 4.4, -0.4


@cvae
@pytest.mark.parametrize(
    "problem", [Problem(BOX, scale=Continuous(asked=3)), Problem(MIXED)], ids=["box", "mixed"]
)
def test_high_rewards_are_where_they_were_observed(problem, seed):
    """Numbers are paid the more the nearer they are to 4.4; of choices only the second one is."""
    rng, estimator = np.random.default_rng((seed, 5)), replace(DEPENDENT, draws=32, components=3)
    action = problem.space.uniform((REPLICAS, 1500), rng)
    reward = np.exp(-((action[..., -1] - GOOD) ** 2) / 2)
    if problem.space.choices:
        reward *= 0.1 + 0.9 * action[..., 0]
        reward = (rng.random(reward.shape) < reward).astype(np.float64)
    log_prob = np.full(reward.shape, -problem.space.log_measure)
    context = np.zeros((REPLICAS, 1500, 0))
    feedback = Feedback(context, action, reward, log_prob, np.ones(reward.shape))
    policy = RewardConditioned(estimator, SubMax())
    state = policy.update(policy.init(problem, REPLICAS, rng), feedback, rng)
    belief = estimator.belief(state.params, context[:, :1])

    def density(*action):
        return belief.prob(np.array([[action]]))[..., 0]

    first = [1.0] * len(problem.space.choices)
    good, bad = (density([*first, number]) for number in (GOOD, BAD))
    assert np.all(good[..., -1] > 2 * bad[..., -1])
    assert np.all(good[..., 0] < good[..., -1])
    if problem.space.choices:
        assert np.all(good[..., -1] > 2 * density([0.0, GOOD])[..., -1])
    decided = policy.act(state, context, rng).action[..., -1]
    assert np.median(np.abs(decided - GOOD)) < 1.5
