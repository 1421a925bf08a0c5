import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from submax.core.errors import DivergedWarning
from submax.core.problem import Feedback, Problem
from submax.core.spaces import Arms
from submax.estimators.network import Softmax
from submax.models.memory import Buffer, Memory
from submax.models.nn.designs import SoftmaxDesign
from submax.models.nn.training import BLOCK, PATIENCE, begins_anew, row_source, train
from submax.models.training_settings import STEPS_WITHOUT_HELD_OUT, Minibatches, Training

pytestmark = [pytest.mark.xdist_group("Softmax"), pytest.mark.long_training]

PROBLEM = Problem(Arms(3), context_width=1)
DESIGN = SoftmaxDesign((3,), 1, 2, 8, "modulation")
# Laid out as twice 27 steps, of which the last is not due.
TRAINING = Training(steps=53, batch=16, learning_rate=0.02, weight_decay=0.01)
SLIGHT = Training(steps=1, batch=16, learning_rate=1e-7, continued=True)
REPLICAS = 3


def some_rows(replicas, rows, seed):
    """Rewarded where the action is 0 and mostly not elsewhere, with weights of all kinds."""
    rng = np.random.default_rng((seed, 5))
    shape = (replicas, rows)
    action = rng.integers(3, size=shape)
    reward = (rng.random(shape) < np.where(action == 0, 0.9, 0.1)).astype(float)
    context = rng.normal(size=(*shape, 1))
    weight = rng.choice([0.5, 1.0, 2.0], size=shape)
    return Feedback(context, action[..., None], reward, np.full(shape, -np.log(3)), weight)


def filled(feedback, problem=PROBLEM):
    return Buffer.empty(problem, len(feedback.reward)).add(feedback, Memory(), None)


def laid_out(buffer):
    """As the estimator lays it out, the reward as one of two."""
    told = np.stack([buffer.reward == 0, buffer.reward == 1], axis=-1)
    return Minibatches.of(buffer, buffer.action, told)


def trained_on(buffer, training, rng, *start):
    return train(DESIGN, training, laid_out(buffer), rng, *start)


def in_a_loop(buffer, training, steps, seed):
    """Parameters of one replica before each step, and after the last, by AdamW as it is."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(2**32, size=1, dtype=np.uint32)
    minibatches = laid_out(buffer)
    rows = np.concatenate([minibatches.draw(27, training.batch, rng) for _ in range(2)])[:, 0]
    optimizer = optax.adamw(training.learning_rate, weight_decay=training.weight_decay)
    model = DESIGN.drawn(np.random.default_rng(drawn[0]))
    state = optimizer.init(model)

    @jax.jit
    def step(model, state, rows):
        def loss(model):
            logits = jax.vmap(model)(rows[:, :1], rows[:, 2:4])
            chosen = jax.nn.one_hot(rows[:, 1].astype(int), 3)
            terms = -jnp.sum(jax.nn.log_softmax(logits) * chosen, axis=1)
            return jnp.sum(rows[:, 4] * terms) / jnp.sum(rows[:, 4])

        change, after = optimizer.update(jax.grad(loss)(model), state, model)
        return optax.apply_updates(model, change), after

    history = [model]
    for one in range(steps):
        model, state = step(model, state, rows[one])
        history.append(model)
    flat = [np.concatenate([np.ravel(x) for x in jax.tree.leaves(one)]) for one in history]
    return np.array(flat), rows


@pytest.fixture(scope="module")
def buffer(seed):
    return filled(some_rows(REPLICAS, 60, seed))


@pytest.fixture(scope="module")
def single(seed):
    return filled(some_rows(1, 200, seed))


@pytest.fixture(scope="module")
def loop(single, seed):
    return in_a_loop(single, TRAINING, 54, seed)


def test_it_takes_the_steps_of_a_plain_loop_and_not_one_more(single, loop, seed):
    assert TRAINING.steps % 2 == 1
    history, _ = loop
    found = trained_on(single, TRAINING, np.random.default_rng(seed)).parameters
    last = np.abs(history[54] - history[53]).max()
    assert np.abs(found[0] - history[53]).max() < last / 10


def test_a_weight_that_is_no_number_stops_its_replica_at_the_step_that_meets_it(single, loop, seed):
    bad = single._replace(weight=single.weight.copy())
    bad.weight[0, 7] = np.nan
    found = trained_on(bad, TRAINING, np.random.default_rng(seed))
    history, rows = loop
    met = (rows[:53, :, 0] == np.float32(single.context[0, 7, 0])).any(axis=1)
    step = int(met.argmax()) if met.any() else -1
    assert found.diverged.tolist() == [step]
    # The parameters of the step before, the last whose loss was known to be finite.
    kept, expected = found.parameters[0], history[max(step - 1, 0)]
    if met.any():
        np.testing.assert_allclose(kept, expected, rtol=0, atol=2e-3)


def test_in_the_estimator_training_goes_on_from_the_last_parameters(seed):
    estimator = Softmax(hidden=8, training=SLIGHT)
    feedback = some_rows(REPLICAS, 20, seed)
    first = estimator.fit(
        estimator.init(PROBLEM, REPLICAS, np.random.default_rng(seed)),
        feedback.rows(slice(0, 10)),
        np.random.default_rng(seed),
    )
    second = estimator.fit(first, feedback.rows(slice(10, 20)), np.random.default_rng(seed + 1))
    np.testing.assert_allclose(second.parameters, first.parameters, rtol=0, atol=1e-6)
    anew = trained_on(second.buffer, SLIGHT, np.random.default_rng(seed + 1)).parameters
    assert np.abs(anew - first.parameters).max() > 0.01


@pytest.mark.parametrize("steps", [53, "fitted"])
def test_training_does_not_depend_on_where_rows_are_gathered(steps, seed, monkeypatch):
    training = dataclasses.replace(TRAINING, steps=steps)
    rows = filled(some_rows(REPLICAS, 200, seed))
    host = trained_on(rows, training, np.random.default_rng(seed))
    there = "submax.models.nn.training.row_source"
    monkeypatch.setattr(there, lambda given: row_source(given, on_device=True))
    device = trained_on(rows, training, np.random.default_rng(seed))
    np.testing.assert_array_equal(host.parameters, device.parameters)


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_in_the_estimator_a_replica_that_diverges_keeps_its_last_good_network(seed):
    estimator = Softmax(hidden=8, training=TRAINING)
    assert estimator.design(PROBLEM) == DESIGN
    rng = np.random.default_rng(seed)
    feedback = some_rows(REPLICAS, 40, seed)
    # The last replica has heard nothing before.
    feedback.weight[2, :20] = 0.0
    # A sum of such weights is not finite in single precision, and so the loss is not.
    feedback.weight[1:, 20:] = 3e38
    fresh = estimator.init(PROBLEM, REPLICAS, rng)
    first = estimator.fit(fresh, feedback.rows(slice(0, 20)), rng)
    with pytest.warns(DivergedWarning) as said:
        second = estimator.fit(first, feedback.rows(slice(20, 40)), rng)
    told = [str(one.message) for one in said if one.category is DivergedWarning]
    assert len(told) == 2
    assert all(f"replica {number} " in one for number, one in enumerate(told, 1))
    for old, new in zip(first.network, second.network, strict=True):
        assert np.array_equal(old[1], new[1])
    assert not np.array_equal(first.network.head_weight[0], second.network.head_weight[0])
    found = estimator.belief(second, np.zeros((REPLICAS, 1, 1))).prob_of_all()
    np.testing.assert_allclose(found.sum(axis=-1), 1.0)


# A number of steps that is fitted

PAYING = Problem(Arms(3), context_width=2)
WIDER = SoftmaxDesign((3,), 2, 2, 8, "modulation")
FITTING = Training(batch=32, learning_rate=0.01)
PAIRS = 12
"""Replicas of each kind. When one replica stops depends on chance, so that tests compare means:
over 200 replicas of each kind the steps were 82 with standard deviation 75 for noise, and 432 with
standard deviation 120 for what can be learned."""
ALL = 2 * PAIRS
NOISE, LEARNABLE = slice(0, PAIRS), slice(PAIRS, ALL)


def paying_rows(rows, seed):
    """Rewards of the first PAIRS replicas are noise; of the others one arm pays in each context."""
    rng = np.random.default_rng((seed, 8))
    shape = (ALL, rows)
    context = rng.normal(size=(*shape, 2))
    action = rng.integers(3, size=(*shape, 1))
    reward = ((context > 0).sum(axis=-1) == action[..., 0]).astype(float)
    reward[NOISE] = rng.random((PAIRS, rows)) < 1 / 3
    return Feedback(context, action, reward, np.full(shape, -np.log(3)), np.ones(shape))


def is_trained_long(steps):
    """Tell whether the mean is beyond the earliest stop; the measured mean is 9 errors above."""
    return steps.mean() > PATIENCE * BLOCK


def paying_table(paying):
    return laid_out(filled(paying, PAYING))


def fitted(paying, rng, start=None, before=None):
    return train(WIDER, FITTING, paying_table(paying), rng, start, before)


@pytest.fixture(scope="module")
def paying(seed):
    return paying_rows(1000, seed)


@pytest.fixture
def compiled():
    """What JAX compiles during a test; a list that grows."""
    heard = []

    def listen(event, duration, **facts):
        if "backend_compile" in event:
            heard.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield heard
    unregister = getattr(jax.monitoring, "unregister_event_duration_listener", None)
    if unregister is not None:
        unregister(listen)


@pytest.fixture(scope="module")
def trained(paying, seed):
    return fitted(paying, np.random.default_rng(seed))


def test_noise_stops_early_and_what_can_be_learned_is_trained_long(trained):
    assert is_trained_long(trained.steps[LEARNABLE])
    # By the numbers at PAIRS, half the mean is 4.8 standard errors above the mean of noise.
    assert trained.steps[NOISE].mean() < trained.steps[LEARNABLE].mean() / 2


def test_what_is_held_out_is_not_trained_on(paying, trained, seed):
    """A wrong reward in every row that is held out stops training at once."""
    turned = paying._replace(reward=paying.reward.copy())
    turned.reward[:, 9::10] = 1 - turned.reward[:, 9::10]
    found = fitted(turned, np.random.default_rng(seed))
    assert found.steps[LEARNABLE].mean() < trained.steps[LEARNABLE].mean() / 2


def test_going_on_returns_to_the_start_if_nothing_is_better(paying, trained, seed):
    """From the best parameters, a step as large as this makes everything worse."""
    wild = Training(batch=32, learning_rate=10.0)
    rows, now = paying_table(paying), np.full(ALL, 1000)
    for before in (now, now // 2):
        rng = np.random.default_rng(seed)
        found = train(WIDER, wild, rows, rng, trained.parameters, before)
        assert not found.steps[LEARNABLE].any()
        assert np.array_equal(found.parameters[LEARNABLE], trained.parameters[LEARNABLE])


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [(0, 1, True), (40, 41, True), (64, 127, False), (100, 200, True), (600, 1000, False)],
)
def test_it_begins_anew_with_few_rows_and_when_they_pass_a_power_of_two(before, now, expected):
    assert begins_anew(np.array([before]), np.array([now])).tolist() == [expected]


def test_a_few_rows_are_all_trained_on_for_a_few_steps(paying, seed):
    few = fitted(paying.rows(slice(0, 10)), np.random.default_rng(seed))
    assert few.steps.tolist() == [STEPS_WITHOUT_HELD_OUT] * ALL
    assert few.diverged.tolist() == [-1] * ALL


def test_a_weight_that_is_no_number_stops_its_replica_alone(paying, seed):
    rows = paying_table(paying)
    rows.table.reshape(ALL, 1000, -1)[NOISE, :, -1] = np.nan
    found = train(WIDER, FITTING, rows, np.random.default_rng(seed))
    assert found.diverged.tolist() == [0] * PAIRS + [-1] * PAIRS
    assert is_trained_long(found.steps[LEARNABLE])
    assert np.all(np.isfinite(found.parameters))


def test_nothing_is_compiled_however_the_buffer_grows(compiled, paying, trained, seed):
    rng = np.random.default_rng(seed)
    fitted(paying, rng, trained.parameters, np.tile([500, 999], PAIRS))
    compiled.clear()
    start, had = None, np.zeros(ALL, dtype=int)
    for rows in (1, 63, 64, 500):
        start = fitted(paying.rows(slice(0, rows)), rng, start, had).parameters
        had = np.full(ALL, rows)
    assert compiled == []
