import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builtin_examples import examples

from submax.core.problem import Feedback, Problem
from submax.core.spaces import Box, Mixed
from submax.estimators import ESTIMATORS
from submax.models.nn.designs import Example
from submax.models.nn.training import restored, unpacked
from submax.models.training_settings import Training
from submax.policies.reward_conditioned import RewardConditioned
from submax.research.rivals.estimators import Denoising, signal_shares
from submax.strategies.weighted import Optimistic
from submax.testing.policies import REAL, check_densities

pytestmark = pytest.mark.xdist_group("Denoising")

PROBLEM = Problem(Mixed((3,), (0.0,), (1.0,)), context_width=2)
ESTIMATOR = Denoising(hidden=5, noise_steps=4, draws=3)


@jax.jit
def predicted(model, inputs, reward):
    return model(inputs, reward)


@pytest.fixture(scope="module")
def trained(seed):
    """A design, the parameters of two replicas, and the network in numpy at two levels."""
    rng = np.random.default_rng(seed)
    design = ESTIMATOR.design(PROBLEM)
    size = sum(np.size(leaf) for leaf in jax.tree.leaves(design.drawn(rng)))
    parameters = unpacked(design, rng.normal(scale=0.5, size=(2, size)).astype(np.float32))
    levels = np.tile(np.eye(2, dtype=np.float32), (2, 1, 1))
    starts = rng.normal(size=(2, 1, 3, 4)).astype(np.float32)
    return design, parameters, design.exported(restored(design, parameters), levels, starts)


@pytest.mark.parametrize("guidance", [0.0, 1.0, 2.5])
def test_paths_follow_the_recursion_with_guidance(guidance, trained, seed):
    """Recompute every path with the model in JAX, one step and one path at a time."""
    design, parameters, network = trained
    context = np.random.default_rng(seed).normal(size=(2, 2, 2))
    found = network.denoised(context, guidance)
    shares = signal_shares(4)
    for replica, level, row, path in np.ndindex(2, 2, 2, 3):
        model = restored(design, {name: part[replica] for name, part in parameters.items()})
        x = network.starts[replica, 0, path].astype(float)
        for step in range(4, 0, -1):
            parts = [x, np.eye(4)[step - 1], context[replica, row]]
            inputs = np.concatenate(parts).astype(np.float32)
            rewards = np.eye(2, dtype=np.float32)[level], np.zeros(2, np.float32)
            told, none = (np.asarray(predicted(model, inputs, reward)) for reward in rewards)
            clean = none + guidance * (told - none)
            noise = (x - np.sqrt(shares[step]) * clean) / np.sqrt(1 - shares[step])
            x = np.sqrt(shares[step - 1]) * clean + np.sqrt(1 - shares[step - 1]) * noise
        # ᾱ_0 = 1, so that the last x is the last prediction.
        np.testing.assert_allclose(x, clean)
        np.testing.assert_allclose(found[replica, level, row, path], clean, rtol=2e-3, atol=2e-3)


def test_the_best_prediction_of_normal_numbers_is_known(seed):
    """If x ~ N(m, s²), the loss of the linear prediction E[x | x_t] is the posterior variance.

    The tolerance is six standard errors of the mean over many draws.
    """
    design = Denoising(hidden=4, noise_steps=5).design(Problem(Box((0.0,), (1.0,))))
    rng = np.random.default_rng(seed)
    mean, spread, count = 0.2, 0.1, 20_000
    # Between 0 and 1 the numbers of actions are half as wide as between −1 and 1.
    action = 0.5 + (mean + spread * rng.normal(size=(count, 1))) / 2
    share = signal_shares(5)[3]
    gain = np.sqrt(share) * spread**2 / (share * spread**2 + 1 - share)

    def best(inputs, reward):
        return mean + gain * (inputs[:1] - np.sqrt(share) * mean)

    def loss(action, noise):
        example = Example(jnp.zeros(0), action, jnp.zeros(2))
        return design.loss(best, example, jnp.asarray(3), noise)

    noise = rng.normal(size=(count, 1)).astype(np.float32)
    found = np.asarray(
        jax.jit(jax.vmap(loss))(jnp.asarray(action, jnp.float32), jnp.asarray(noise))
    )
    expected = spread**2 * (1 - share) / (share * spread**2 + 1 - share)
    assert abs(found.mean() - expected) < 6 * found.std() / np.sqrt(count)


def test_guidance_by_the_reward_finds_the_numbers_that_pay(seed):
    """Numbers between 0.6 and 0.9 pay, and no others: of uniform choices 0.3 pay."""
    problem, rng = Problem(Box((0.0,), (1.0,))), np.random.default_rng(seed)
    training = Training(steps=300, batch=64, learning_rate=0.01)
    policy = RewardConditioned(Denoising(hidden=16, training=training), Optimistic())
    action = rng.random((4, 400, 1))
    reward = ((action[..., 0] > 0.6) & (action[..., 0] < 0.9)).astype(float)
    feedback = Feedback(np.zeros((4, 400, 0)), action, reward, None, np.ones((4, 400)))
    state = policy.update(policy.init(problem, 4, rng), feedback, rng)
    drawn = policy.act(state, np.zeros((4, 250, 0)), rng).action
    # Of 1000 uniform draws the share has a standard error of 0.0145; paths are only 4 times 16.
    assert np.mean((drawn > 0.6) & (drawn < 0.9)) > 0.3 + 12 * 0.0145


def test_choices_and_numbers_are_drawn_with_their_densities(seed):
    """The suite of policies on a space with a choice and a number: integrals and frequencies."""
    check_densities(
        RewardConditioned(next(examples(ESTIMATORS, "denoising")), Optimistic()), REAL[1], seed
    )
