import numpy as np
import pytest

from submax.core.problem import Feedback, Problem
from submax.core.spaces import Arms
from submax.models.memory import Buffer, Memory
from submax.models.nn.designs import SoftmaxDesign
from submax.models.nn.training import BLOCK, PATIENCE, begins_anew, train
from submax.models.training_settings import (
    HIGHEST_STEP_LIMIT,
    LENGTHENED,
    STEPS_WITHOUT_HELD_OUT,
    Minibatches,
    Training,
    most_steps,
)

pytestmark = [pytest.mark.xdist_group("Softmax"), pytest.mark.long_training]

PROBLEM = Problem(Arms(3), context_width=2)
DESIGN = SoftmaxDesign((3,), 2, 2, 8, "modulation")
TRAINING = Training(batch=32, learning_rate=0.01)
PAIRS = 12
"""Replicas of each kind. When one replica stops depends on chance, so that tests compare means:
over 200 replicas of each kind the steps were 82 with standard deviation 75 for noise, and 432 with
standard deviation 120 for what can be learned."""
REPLICAS = 2 * PAIRS
NOISE, LEARNABLE = slice(0, PAIRS), slice(PAIRS, REPLICAS)


def some_rows(rows, seed):
    """Rewards of the first PAIRS replicas are noise; of the others one arm pays in each context."""
    rng = np.random.default_rng((seed, 8))
    shape = (REPLICAS, rows)
    context = rng.normal(size=(*shape, 2))
    action = rng.integers(3, size=(*shape, 1))
    reward = ((context > 0).sum(axis=-1) == action[..., 0]).astype(float)
    reward[NOISE] = rng.random((PAIRS, rows)) < 1 / 3
    return Feedback(context, action, reward, np.full(shape, -np.log(3)), np.ones(shape))


def is_trained_long(steps):
    """Tell whether the mean is beyond the earliest stop; the measured mean is 9 errors above."""
    return steps.mean() > PATIENCE * BLOCK


def laid_out(feedback):
    buffer = Buffer.empty(PROBLEM, len(feedback.reward)).add(feedback, Memory(), None)
    told = np.stack([buffer.reward == 0, buffer.reward == 1], axis=-1)
    return Minibatches.of(buffer, buffer.action, told)


def fitted(feedback, rng, start=None, before=None):
    return train(DESIGN, TRAINING, laid_out(feedback), rng, start, before)


@pytest.fixture(scope="module")
def feedback(seed):
    return some_rows(1000, seed)


@pytest.fixture(scope="module")
def trained(feedback, seed):
    return fitted(feedback, np.random.default_rng(seed))


def test_noise_stops_early_and_what_can_be_learned_is_trained_long(trained):
    assert is_trained_long(trained.steps[LEARNABLE])
    # By the numbers at PAIRS, half the mean is 4.8 standard errors above the mean of noise.
    assert trained.steps[NOISE].mean() < trained.steps[LEARNABLE].mean() / 2


def test_what_is_held_out_is_not_trained_on(feedback, trained, seed):
    """A wrong reward in every row that is held out stops training at once."""
    turned = feedback._replace(reward=feedback.reward.copy())
    turned.reward[:, 9::10] = 1 - turned.reward[:, 9::10]
    found = fitted(turned, np.random.default_rng(seed))
    assert found.steps[LEARNABLE].mean() < trained.steps[LEARNABLE].mean() / 2


def test_going_on_returns_to_the_start_if_nothing_is_better(feedback, trained, seed):
    """From the best parameters, a step as large as this makes everything worse."""
    wild = Training(batch=32, learning_rate=10.0)
    rows, now = laid_out(feedback), np.full(REPLICAS, 1000)
    for before in (now, now // 2):
        rng = np.random.default_rng(seed)
        found = train(DESIGN, wild, rows, rng, trained.parameters, before)
        assert not found.steps[LEARNABLE].any()
        assert np.array_equal(found.parameters[LEARNABLE], trained.parameters[LEARNABLE])


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [(0, 1, True), (40, 41, True), (64, 127, False), (100, 200, True), (600, 1000, False)],
)
def test_it_begins_anew_with_few_rows_and_when_they_pass_a_power_of_two(before, now, expected):
    assert begins_anew(np.array([before]), np.array([now])).tolist() == [expected]


def test_the_number_of_steps_grows_with_the_rows_and_is_bounded():
    rows = np.array([1, 63, 64, 10_000, 10_000_000])
    found = most_steps(rows, Training())
    assert np.all(np.diff(found[1:]) > 0)
    assert found[0] == found[1] == STEPS_WITHOUT_HELD_OUT
    assert found[4] == HIGHEST_STEP_LIMIT
    assert most_steps(rows, Training("converged"))[4] == LENGTHENED * HIGHEST_STEP_LIMIT


def test_a_few_rows_are_all_trained_on_for_a_few_steps(feedback, seed):
    few = fitted(feedback.rows(slice(0, 10)), np.random.default_rng(seed))
    assert few.steps.tolist() == [STEPS_WITHOUT_HELD_OUT] * REPLICAS
    assert few.diverged.tolist() == [-1] * REPLICAS


def test_a_weight_that_is_no_number_stops_its_replica_alone(feedback, seed):
    rows = laid_out(feedback)
    rows.table.reshape(REPLICAS, 1000, -1)[NOISE, :, -1] = np.nan
    found = train(DESIGN, TRAINING, rows, np.random.default_rng(seed))
    assert found.diverged.tolist() == [0] * PAIRS + [-1] * PAIRS
    assert is_trained_long(found.steps[LEARNABLE])
    assert np.all(np.isfinite(found.parameters))


def test_nothing_is_compiled_however_the_buffer_grows(compiled, feedback, trained, seed):
    rng = np.random.default_rng(seed)
    fitted(feedback, rng, trained.parameters, np.tile([500, 999], PAIRS))
    compiled.clear()
    start, had = None, np.zeros(REPLICAS, dtype=int)
    for rows in (1, 63, 64, 500):
        start = fitted(feedback.rows(slice(0, rows)), rng, start, had).parameters
        had = np.full(REPLICAS, rows)
    assert compiled == []
