from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from submax.core.problem import Problem
from submax.core.spaces import Arms
from submax.estimators.network import Softmax
from submax.models.nn.designs import Design, Example
from submax.models.training_settings import Training
from submax.research.rivals.designs import VariationalDesign, VariationalModel, divergence
from submax.research.rivals.estimators import VariationalContinual
from submax.testing.problems import some_contexts, some_feedback

pytestmark = pytest.mark.xdist_group("VariationalContinual")

PROBLEM = Problem(Arms(3), context_width=2)
BRIEF = Training(steps=6, batch=8, learning_rate=0.05)


class Location(eqx.Module):
    """The one parameter of a normal distribution with variance 1."""

    place: jax.Array


@dataclass(frozen=True)
class NormalDesign(Design[Location]):
    """x ~ N(θ, 1): a network of one parameter, whose posterior is known."""

    sizes: tuple[int, ...] = ()
    reals: int = 0
    context_width: int = 1
    reward_width: int = 0

    def drawn(self, rng):
        return Location(np.zeros(1, dtype=np.float32))

    def losses(self, model, batch, key):
        return (batch.context[:, 0] - model.place[0]) ** 2 / 2

    def held_out_losses(self, model, batch, share, key):
        return self.losses(model, batch, key)[:, None]


def model_of(mean, deviation, prior_mean, prior_deviation, share):
    values = (mean, np.log(deviation), prior_mean, np.log(prior_deviation))
    parts = [Location(jnp.asarray([value], dtype=jnp.float32)) for value in values]
    return VariationalModel(*parts, jnp.asarray(share, dtype=jnp.float32))


def expected_loss(model, rows):
    """Return N times the mean loss, exactly: for a square two draws, ε = ±1, have its mean."""
    total = 0.0
    for sign in (-1.0, 1.0):
        place = model.mean.place + sign * jnp.exp(model.log_deviation.place)
        total += NormalDesign().losses(Location(place), Example(rows, None, None), None).mean() / 2
    return total + model.prior_share * divergence(model)


def test_two_updates_lead_to_the_exact_posterior_of_all_rows(seed):
    """The loss has no gradient at the conjugate posterior, whose prior is the last posterior."""
    rng = np.random.default_rng(seed)
    mean, precision = 0.0, 1 / 4
    for count in (5, 9):
        rows = rng.normal(2.0, 1.0, size=(count, 1)).astype(np.float32)
        prior = (mean, precision**-0.5)
        mean = (precision * mean + rows.sum()) / (precision + count)
        precision += count
        best = model_of(mean, precision**-0.5, *prior, 1 / count)
        gradient = jax.jit(jax.grad(expected_loss))
        slope = gradient(best, jnp.asarray(rows))
        assert np.abs(slope.mean.place).max() < 1e-4
        assert np.abs(slope.log_deviation.place).max() < 1e-4
        assert np.all(slope.prior_mean.place == 0)
        assert np.all(slope.prior_log_deviation.place == 0)
        other = model_of(mean + 0.3, precision**-0.5, *prior, 1 / count)
        assert np.abs(gradient(other, jnp.asarray(rows)).mean.place).max() > 0.1


def test_the_loss_of_a_design_is_that_of_a_drawn_network_and_its_share(seed):
    """Average over many draws; the tolerance is six standard errors."""
    rows = jnp.asarray(np.random.default_rng(seed).normal(size=(4, 1)), dtype=jnp.float32)
    model = model_of(0.5, 0.2, 0.0, 1.0, 0.25)
    design = VariationalDesign(NormalDesign(), 1.0)
    keys = jax.random.split(jax.random.key(seed), 2000)
    batch = Example(rows, None, None)
    found = jax.jit(jax.vmap(lambda key: design.losses(model, batch, key).mean()))(keys)
    error = float(found.std()) / np.sqrt(2000)
    assert abs(float(found.mean()) - float(expected_loss(model, rows))) < 6 * error


@pytest.fixture(scope="module")
def estimator():
    return VariationalContinual(Softmax(hidden=4, training=BRIEF))


def test_the_prior_of_an_update_is_the_posterior_of_the_last(estimator, seed):
    rng = np.random.default_rng(seed)
    first = some_feedback(PROBLEM, 4, 30, seed)
    second = some_feedback(PROBLEM, 4, 8, seed + 1)
    before = estimator.fit(estimator.init(PROBLEM, 4, rng), first, rng)
    after = estimator.fit(before, second, rng)
    for name, value in before.parameters.items():
        if name.startswith(("mean", "log_deviation")):
            np.testing.assert_array_equal(after.parameters[f"prior_{name}"], value)
            assert not np.array_equal(after.parameters[name], value)
    np.testing.assert_allclose(after.parameters["prior_share"], 0.01 / 8, rtol=1e-6)
    assert after.buffer.filled.tolist() == [38] * 4


def test_a_heavy_prior_keeps_what_was_learned(seed):
    context, rng = some_contexts(PROBLEM, 4, 5, seed), np.random.default_rng(seed)
    network, moves = Softmax(hidden=4, training=BRIEF), []
    light, heavy = (VariationalContinual(network, prior_weight=one) for one in (1e-6, 1e6))
    before = light.fit(light.init(PROBLEM, 4, rng), some_feedback(PROBLEM, 4, 30, seed), rng)
    for estimator in (light, heavy):
        given = some_feedback(PROBLEM, 4, 30, seed + 1)
        after = estimator.fit(before, given, np.random.default_rng(seed))
        apart = [estimator.belief(one, context).prob_of_all() for one in (before, after)]
        moves.append(np.abs(apart[0] - apart[1]).mean())
    assert moves[1] < moves[0]


@pytest.mark.soak
def test_it_learns_which_arm_suits_which_context_in_two_updates(seed):
    training = Training(steps=200, batch=64, learning_rate=0.01)
    estimator = VariationalContinual(Softmax(hidden=16, training=training), prior_weight=1e-3)
    rng = np.random.default_rng(seed)
    params = estimator.init(PROBLEM, 4, rng)
    for _ in range(2):
        feedback = some_feedback(PROBLEM, 4, 300, int(rng.integers(2**31)))
        right = feedback.action[..., 0] == (feedback.context[..., 0] > 0)
        params = estimator.fit(params, feedback._replace(reward=right.astype(float)), rng)
    sides = np.array([[[-1.0, 0.0], [1.0, 0.0]]] * 4)
    found = estimator.belief(params, sides).prob_of_all()[:, :, 1]
    # A network that learned nothing gives each arm a third.
    assert found[:, 0, 0].mean() > 0.6
    assert found[:, 1, 1].mean() > 0.6
