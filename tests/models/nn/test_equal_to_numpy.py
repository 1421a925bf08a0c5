import jax
import jax.numpy as jnp
import numpy as np
import pytest

from submax.core.problem import Feedback, Problem
from submax.core.rewards import Discrete
from submax.core.serialization import read_state, state_bytes
from submax.core.spaces import Arms, Slots
from submax.models.networks.choices import INJECTION_FORMS, first_choices
from submax.models.nn.designs import (
    CVAEDesign,
    log_prob,
    log_prob_together,
    one_hot,
)
from submax.models.nn.training import restored
from submax.models.training_settings import Training
from submax.research.rivals.designs import ValueDesign
from submax.research.rivals.neural import NeuralUCB
from submax.research.rivals.value_networks import ValueBelief
from submax.testing.problems import some_feedback

SIZES, WIDTH, BIN_EDGES, HIDDEN, LATENT = (2, 1, 3), 2, 3, 5, 2
REPLICAS, ROWS, DRAWS = 3, 4, 3
CHOICES = sum(SIZES)
PRECISION = {"rtol": 1e-5, "atol": 1e-5}
# Every replica is asked for levels of its own: at each bin edge, and one between two.
LEVELS = np.array(
    [np.roll([*np.eye(BIN_EDGES), [0.4, 0.6, 0.0]], shift, axis=0) for shift in range(REPLICAS)],
    dtype=np.float32,
)
ASKED = LEVELS.shape[1]


def some_parameters(design, seed):
    """Parameters of all replicas, none of them zero."""
    leaves = jax.tree.leaves(design.drawn(np.random.default_rng(0)))
    shape = (REPLICAS, sum(leaf.size for leaf in leaves))
    vector = np.random.default_rng((seed, 1)).normal(scale=0.6, size=shape)
    return vector.astype(np.float32)


def some_context(seed, width=WIDTH):
    rng = np.random.default_rng((seed, 2))
    return rng.normal(size=(REPLICAS, ROWS, width)).astype(np.float32)


def over(axes, function):
    """Vectorize over several axes, the outermost first; a 0 or None for each argument."""
    for one in reversed(axes):
        function = jax.vmap(function, in_axes=one)
    return jax.jit(function)


def read_back(network):
    return read_state(state_bytes(network, {}))[0]


@pytest.mark.parametrize("reals", [0, 2])
@pytest.mark.parametrize("width", [0, WIDTH])
@pytest.mark.parametrize("shared", [True, False], ids=["shared draws", "draws a level"])
@pytest.mark.parametrize("form", INJECTION_FORMS)
def test_the_decoder_of_a_cvae(form, shared, width, reals, seed):
    design = CVAEDesign(SIZES, reals, width, BIN_EDGES, HIDDEN, LATENT, form, 0.5, 2)
    model = restored(design, some_parameters(design, seed))
    shape = (REPLICAS, 1 if shared else ASKED, DRAWS, LATENT)
    latent = np.random.default_rng((seed, 3)).normal(size=shape).astype(np.float32)
    context = some_context(seed, width)

    def decode(decoder, latent, context, level):
        return decoder(jnp.concatenate([latent, context]), level)

    # Replicas, levels, rows and draws.
    axes = [(0, 0, 0, 0), (None, 0, None, 0), (None, None, 0, None), (None, 0, None, None)]
    every = np.broadcast_to(latent, (REPLICAS, ASKED, DRAWS, LATENT))
    expected = over(axes, decode)(model.decoder, every, context, LEVELS)
    # Of two components, one chance, and a location and a width for each number.
    assert expected.shape == (REPLICAS, ASKED, ROWS, DRAWS, CHOICES + (2 + 4 * reals) * (reals > 0))
    network = model.exported(LEVELS, latent)
    np.testing.assert_allclose(network.logits(context), expected, **PRECISION)
    again = read_back(network)
    np.testing.assert_array_equal(again.logits(context), network.logits(context))


@pytest.fixture(scope="module")
def values(seed):
    """A value design with its model of all replicas, and the same as plain arrays."""
    design = ValueDesign(SIZES, WIDTH, HIDDEN, 0.0)
    parameters = some_parameters(design, seed)
    return design, parameters, design.exported(restored(design, parameters))


@pytest.fixture(scope="module")
def problem():
    return Problem(Slots(SIZES), context_width=WIDTH, scale=Discrete((0.0, 0.5, 1.0)))


def inputs(context, listing):
    """What the value network reads for every row and action: ``[R, n, M, C + D]``."""
    rows = np.zeros((*context.shape[:2], len(listing), CHOICES + WIDTH), dtype=np.float32)
    for one, action in enumerate(listing):
        rows[:, :, one, action + first_choices(SIZES)] = 1.0
    rows[..., CHOICES:] = context[:, :, None]
    return rows


@pytest.mark.parametrize("own", [False, True], ids=["a mask for all rows", "a mask a row"])
def test_a_value_network(values, problem, own, seed):
    """The same actions in every row, and actions of their own, with masks and without."""
    design, parameters, network = values
    context, listing = some_context(seed), problem.space.listing()
    shape = (2, REPLICAS, ROWS if own else 1, HIDDEN)
    masks = np.random.default_rng(seed).choice([0.0, 1.5], size=shape).astype(np.float32)
    axes = [(0, 0, 0), (None, 0, 0), (None, 0, None)]
    ask = over(axes, lambda model, x, masks: model(x, masks))
    model, choices = restored(design, parameters), listing + first_choices(SIZES)
    for given in ((), (masks[0], masks[1])):
        scale = np.broadcast_to(masks if given else 1.0, (2, REPLICAS, ROWS, HIDDEN))
        expected = ask(model, inputs(context, listing), np.moveaxis(scale, 0, 2))
        for one in (network, read_back(network)):
            for asked in (choices, np.tile(choices, (REPLICAS, ROWS, 1, 1))):
                found = one.logits(one.hidden(context, asked, *given))
                np.testing.assert_allclose(found, expected, **PRECISION)


def plain_logit(arrays, x):
    """The logit from plain arrays of one replica."""
    weight = jnp.concatenate([arrays.choice_weight, arrays.context_weight])
    first = jax.nn.relu(x @ weight + arrays.first_bias)
    second = jax.nn.relu(first @ arrays.second_weight + arrays.second_bias)
    return second @ arrays.head_weight + arrays.head_bias


@pytest.mark.xdist_group("ValueBelief")
def test_precision_and_variance_follow_from_the_gradients(problem, seed):
    feedback = some_feedback(problem, REPLICAS, 7, seed)
    # Replicas with fewer rows, and one without any.
    feedback.weight[1, 2:] = 0.0
    feedback.weight[2] = 0.0
    training = Training(steps=20, batch=8, learning_rate=0.05)
    policy, rng = (
        NeuralUCB(ridge=0.25, hidden=HIDDEN, training=training),
        np.random.default_rng(seed),
    )
    fresh, context = policy.init(problem, REPLICAS, rng), some_context(seed)
    scores, deviation = policy.scores(fresh, context)
    assert np.all(scores == 0)
    # All slopes are 0 but that of the last bias, which is 1.
    np.testing.assert_allclose(deviation, np.sqrt(1 / 0.25))
    found = policy.update(fresh, feedback, rng)
    network, listing = found.network, problem.space.listing()
    rows = inputs(feedback.context, listing)
    taken = problem.space.index(feedback.action)[..., None, None]
    rows = np.take_along_axis(rows, taken, axis=2)[:, :, 0]
    gradient = over([(0, 0), (None, 0)], jax.grad(plain_logit))(network, rows)
    assert np.asarray(gradient.second_weight)[0].any()
    for precision, one in zip(found.extra, gradient, strict=True):
        there = feedback.weight.reshape(*feedback.weight.shape, *[1] * (one.ndim - 2)) > 0
        expected = 0.25 + (np.asarray(one) ** 2 * there).sum(axis=1)
        np.testing.assert_allclose(precision, expected, rtol=1e-4, atol=1e-6)
    scores, deviation = policy.scores(found, context)
    hidden = network.hidden(context, listing + first_choices(SIZES))
    np.testing.assert_allclose(scores, network.logits(hidden), rtol=1e-6)
    # The variance is the quadratic form of the gradient with the inverse of the precision.
    axes = [(0, 0), (None, 0), (None, 0)]
    gradient = over(axes, jax.grad(plain_logit))(network, inputs(context, listing))
    terms = [
        np.asarray(one) ** 2 / np.asarray(precision)[:, None, None]
        for one, precision in zip(gradient, found.extra, strict=True)
    ]
    variance = sum(term.reshape(*term.shape[:3], -1).sum(axis=-1) for term in terms)
    np.testing.assert_allclose(deviation**2, variance, rtol=1e-4)


def test_slots_together_have_the_probability_and_the_gradient_of_slots_one_by_one(seed):
    rng = np.random.default_rng((seed, 5))
    scale = np.repeat([1.0, 60.0], ROWS)[:, None]
    # Behind the choices there may be outputs for real-valued parts.
    logits = (scale * rng.normal(size=(2 * ROWS, CHOICES + 2))).astype(np.float32)
    # Another slot whose logits are far higher must not change the sums of this one.
    logits[[0, ROWS], 3:6] += 500.0
    action = rng.integers(SIZES, size=(2 * ROWS, 3))

    def both(logits, action):
        chosen = one_hot(action, SIZES)
        hows = (log_prob, log_prob_together)
        return [
            jax.value_and_grad(lambda x, how=how: how(x, chosen, SIZES))(logits) for how in hows
        ]

    found = jax.jit(jax.vmap(both))(logits, action)
    # A sum of few terms has a rounding error of a few units in the last place of the largest one.
    rounding = 8 * np.finfo(np.float32).eps
    for part in (slice(0, ROWS), slice(ROWS, None)):
        for one, other in zip(*found, strict=True):
            size = np.abs(logits[part]).max() if one.ndim == 1 else 1.0
            np.testing.assert_allclose(other[part], one[part], rtol=0, atol=rounding * size)
    # By hand: 3/4 of the first slot, all of the second, and 4/8 of the third.
    logits = jnp.log(jnp.array([1.0, 3.0, 7.0, 2.0, 2.0, 4.0]))
    for value, _ in jax.jit(both)(logits, jnp.array([1, 0, 2])):
        np.testing.assert_allclose(value, np.log(0.75 * 0.5), rtol=1e-6)


@pytest.mark.xdist_group("ValueBelief")
@pytest.mark.slow
def test_a_new_value_network_prefers_no_action_and_knows_the_mean_reward(seed):
    """A fixed number of steps starts as fitted steps do: zero head, bias at the mean's logit."""
    rng = np.random.default_rng(seed)
    rows = 400
    reward = (rng.random((2, rows)) < np.array([[0.05], [0.6]])).astype(float)
    feedback = Feedback(
        rng.normal(size=(2, rows, 2)),
        rng.integers(3, size=(2, rows, 1)),
        reward,
        None,
        np.ones((2, rows)),
    )
    problem = Problem(Arms(3), context_width=2)
    training = Training(steps=1, batch=8, learning_rate=1e-8)
    belief = ValueBelief.empty(problem, 2, 8).trained(feedback, training, 0.0, rng)
    value = 1 / (1 + np.exp(-belief.logits(rng.normal(size=(2, 5, 2)))))
    mean = (reward.sum(axis=1) + 0.5) / (rows + 1)
    np.testing.assert_allclose(value, np.broadcast_to(mean[:, None, None], value.shape), rtol=1e-4)
