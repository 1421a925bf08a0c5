import itertools

import numpy as np
import pytest
from refusals import raises_code

from submax.core.spaces.slots import Slots
from submax.environments.networks.highest_logits import highest_logits
from submax.environments.networks.truth_network import (
    TruthNetwork,
    check_truth,
    draw_directions,
    draw_network,
    logits,
)


def one_logit(truth, sizes, replica, context, action):
    """The network with its one-hot input written out and its units one by one."""
    one_hot = [np.eye(size)[choice] for choice, size in zip(action, sizes, strict=True)]
    inputs = np.concatenate([*one_hot, context])
    weight = [*truth.choice_weight[replica], *truth.context_weight[replica]]
    total = 0.0
    for unit, output in enumerate(truth.output_weight[replica]):
        before = sum(value * row[unit] for value, row in zip(inputs, weight, strict=True))
        total += output * max(before, 0.0)
    return total


def listed_highest(truth, sizes, context):
    """The highest logit, all joint actions listed."""
    replicas, rows, _ = context.shape
    actions = Slots(sizes).listing()
    listed = [
        logits(
            truth,
            sizes,
            np.repeat(context[:, row : row + 1], len(actions), axis=1),
            np.tile(actions, (replicas, 1, 1)),
        ).max(axis=1)
        for row in range(rows)
    ]
    return np.stack(listed, axis=1)


@pytest.mark.parametrize("sizes", [(4,), (1,), (2, 3), (3, 1, 2)])
def test_logits_are_those_of_the_written_out_network(sizes, seed):
    rng = np.random.default_rng(seed)
    truth = draw_network(2, sum(sizes), 3, 5, rng)
    context = draw_directions(2, 4, 3, rng)
    action = Slots(sizes).action(rng.integers(Slots(sizes).size, size=(2, 4)))
    found = logits(truth, sizes, context, action)
    for replica, row in itertools.product(range(2), range(4)):
        expected = one_logit(truth, sizes, replica, context[replica, row], action[replica, row])
        assert found[replica, row] == pytest.approx(expected, rel=0, abs=1e-12)


def test_weights_are_glorot_uniform(seed):
    truth = draw_network(200, 6, 4, 10, np.random.default_rng(seed))
    assert [part.shape for part in truth] == [(200, 6, 10), (200, 4, 10), (200, 10)]
    for part, fans in zip(truth, (6 + 4 + 10, 6 + 4 + 10, 10 + 1), strict=True):
        limit = np.sqrt(6 / fans)
        assert np.abs(part).max() <= limit
        # Uniform: variance limit² / 3; the square of a draw has a spread of 0.3 limit².
        error = 0.3 * limit**2 / np.sqrt(part.size)
        assert abs(np.mean(part**2) - limit**2 / 3) < 6 * error
        assert abs(np.mean(part)) < 6 * limit / np.sqrt(3 * part.size)


def test_directions_lie_on_the_unit_sphere(seed):
    direction = draw_directions(20, 500, 5, np.random.default_rng(seed))
    assert np.allclose(np.linalg.norm(direction, axis=-1), 1.0, rtol=0, atol=1e-12)
    # Uniform: each coordinate has mean 0 and variance 1 / 5.
    assert np.abs(direction.mean(axis=(0, 1))).max() < 6 * np.sqrt(1 / 5 / 10_000)
    assert np.abs((direction**2).mean(axis=(0, 1)) - 1 / 5).max() < 6 * np.sqrt(0.08 / 10_000)


@pytest.mark.parametrize(
    ("sizes", "hidden"),
    [
        ((3,), 4),
        ((256,), 4),
        ((300,), 4),
        ((2, 3, 4), 7),
        ((5, 7, 11), 16),
        ((40, 2, 9), 32),
        ((2,) * 10, 3),
        ((1, 17, 1, 16, 1), 32),
        ((33, 32), 1),
        ((257, 3), 64),
    ],
)
def test_the_highest_logit_is_that_of_enumeration(sizes, hidden, seed):
    rng = np.random.default_rng(seed)
    truth = draw_network(3, sum(sizes), 4, hidden, rng)
    context = draw_directions(3, 7, 4, rng)
    found = highest_logits(truth, sizes, context)
    assert np.allclose(found, listed_highest(truth, sizes, context), rtol=0, atol=1e-11)


def test_the_highest_of_32768_is_that_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    sizes = (2, 4, 8, 16, 32)
    truth = draw_network(3, sum(sizes), 20, 32, rng)
    context = draw_directions(3, 3, 20, rng)
    found = highest_logits(truth, sizes, context)
    assert np.allclose(found, listed_highest(truth, sizes, context), rtol=0, atol=1e-11)


@pytest.mark.parametrize("sign", [-1, 0, 1])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e6])
def test_the_highest_is_exact_for_outputs_of_one_sign_and_any_scale(sign, scale, seed):
    rng = np.random.default_rng(seed)
    truth = draw_network(2, 30, 3, 8, rng)
    truth = TruthNetwork(*truth[:2], sign * scale * np.abs(truth.output_weight))
    context = draw_directions(2, 5, 3, rng)
    found = highest_logits(truth, (6, 8, 16), context)
    expected = listed_highest(truth, (6, 8, 16), context)
    assert np.allclose(found, expected, rtol=0, atol=1e-11 * scale)


@pytest.mark.parametrize("sizes", [(300,), (8, 4, 16)])
def test_the_highest_is_exact_where_choices_are_equal(sizes, seed):
    rng = np.random.default_rng(seed)
    truth = draw_network(2, sum(sizes), 3, 8, rng)
    same = np.repeat(truth.choice_weight[:, :1], sum(sizes), axis=1)
    for weight in (same, np.zeros_like(same)):
        equal = truth._replace(choice_weight=weight)
        context = draw_directions(2, 5, 3, rng)
        found = highest_logits(equal, sizes, context)
        assert np.allclose(found, listed_highest(equal, sizes, context), rtol=0, atol=1e-11)


def test_the_highest_of_no_contexts_is_empty():
    truth = draw_network(2, 62, 20, 32, np.random.default_rng(0))
    for sizes in ((2, 4, 8, 16, 32), (62,)):
        assert highest_logits(truth, sizes, np.zeros((2, 0, 20))).shape == (2, 0)


def test_too_many_actions_to_look_through_are_refused():
    truth = draw_network(1, 42, 2, 4, np.random.default_rng(0))
    with raises_code("invalid-input"):
        highest_logits(truth, (2,) * 21, np.zeros((1, 1, 2)))


@pytest.mark.parametrize("shift", [float("nan"), float("inf"), True, "1", None])
def test_a_bad_shift_is_refused(shift):
    with raises_code("invalid-input"):
        check_truth(2, shift, 3)
