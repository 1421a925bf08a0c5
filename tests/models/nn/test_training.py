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
from submax.models.nn.training import row_source, train
from submax.models.training_settings import Minibatches, Training

pytestmark = pytest.mark.xdist_group("Softmax")

PROBLEM = Problem(Arms(3), context_width=1)
DESIGN = SoftmaxDesign((3,), 1, 2, 8, "modulation")
# Laid out as twice 27 steps, of which the last is not due.
TRAINING = Training(steps=53, batch=16, learning_rate=0.02, weight_decay=0.01)
ABSURD = Training(steps=4, batch=16, learning_rate=1e20)
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


def filled(feedback):
    return Buffer.empty(PROBLEM, len(feedback.reward)).add(feedback, Memory(), None)


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


def test_in_the_estimator_an_absurd_learning_rate_leaves_probabilities(seed):
    estimator = Softmax(hidden=8, training=ABSURD)
    rng = np.random.default_rng(seed)
    feedback = some_rows(REPLICAS, 40, seed)
    # Rows that are not there, for a replica that learns nothing and does not diverge.
    feedback.weight[1] = 0.0
    fresh = estimator.init(PROBLEM, REPLICAS, rng)
    with pytest.warns(DivergedWarning, match=r"replica [02] .* step [123]\b"):
        params = estimator.fit(fresh, feedback, rng)
    found = estimator.belief(params, feedback.context[:, :5]).prob_of_all()
    np.testing.assert_allclose(found.sum(axis=-1), 1.0)
    assert np.all(found[1] == 1 / 3)
