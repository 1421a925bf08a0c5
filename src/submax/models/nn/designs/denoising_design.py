"""A network that predicts an action from one with noise, conditioned on the reward."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.models.networks.denoising_network import DenoisingNetwork, signal_shares
from submax.models.nn.designs.choices import features
from submax.models.nn.designs.design import Design, Example
from submax.models.nn.layers.dense import Dense
from submax.models.nn.layers.trunk import Trunk

UNCONDITIONED = 0.2
"""Share of rows whose reward is hidden in training, so that the network also learns to predict an
action without a reward; between the 0.1 and 0.25 that are common."""


class DenoisingModel(eqx.Module):
    """A network from a noisy action, the step, the context and the reward to the action."""

    trunk: Trunk
    head: Dense

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        """Return the prediction ``[W]`` for inputs ``[W + T + D]`` and an encoded reward."""
        return self.head(self.trunk(x, reward))


@dataclass(frozen=True)
class DenoisingDesign(Design[DenoisingModel]):
    """The network x̂ that minimizes E ‖x̂(x_t, t, c, r) − x‖², x_t = √ᾱ_t x + √(1 − ᾱ_t) ε.

    x are the numbers of an action between −1 and 1, the one-hot choices among them. t is uniform
    from 1 to T = ``steps``, and ε is standard normal. In a share of the rows r is hidden, encoded
    as zeros.

    Reference: Ho et al. (2020); Ho and Salimans (2022) for hidden conditions.
    """

    sizes: tuple[int, ...]
    reals: int
    context_width: int
    reward_width: int
    hidden: int
    steps: int
    injection: str

    @property
    def action_width(self) -> int:
        """Number of numbers that describe an action (W)."""
        return sum(self.sizes) + self.reals

    def drawn(self, rng: np.random.Generator) -> DenoisingModel:
        inputs = self.action_width + self.steps + self.context_width
        return DenoisingModel(
            Trunk.drawn(inputs, self.hidden, self.reward_width, self.injection, rng),
            Dense.drawn(self.hidden, self.action_width, rng),
        )

    def losses(self, model: DenoisingModel, batch: Example, key: jax.Array) -> jax.Array:
        """Return the squared error of each row, for a step and a noise of its own."""
        keys = jax.random.split(key, 3)
        rows = batch.reward.shape[0]
        step = jax.random.randint(keys[0], (rows,), 1, self.steps + 1)
        noise = jax.random.normal(keys[1], (rows, self.action_width))
        conditioned = jax.random.bernoulli(keys[2], 1 - UNCONDITIONED, (rows, 1))
        masked = batch._replace(reward=batch.reward * conditioned)
        return jax.vmap(self.loss, in_axes=(None, 0, 0, 0))(model, masked, step, noise)

    def loss(
        self, model: DenoisingModel, example: Example, step: jax.Array, noise: jax.Array
    ) -> jax.Array:
        """Return the squared error of one row at a given step and noise: a scalar."""
        clean = self.numbers(example.action)
        share = jnp.asarray(signal_shares(self.steps), dtype=clean.dtype)[step]
        noisy = jnp.sqrt(share) * clean + jnp.sqrt(1 - share) * noise
        inputs = jnp.concatenate([noisy, jnp.eye(self.steps)[step - 1], example.context])
        return jnp.sum((model(inputs, example.reward) - clean) ** 2)

    def numbers(self, action: jax.Array) -> jax.Array:
        """Return an action as numbers between −1 and 1: ``[S] -> [W]``."""
        found = features(action, self.sizes)
        choices = sum(self.sizes)
        return jnp.concatenate([2 * found[:choices] - 1, found[choices:]])

    def held_out_losses(
        self, model: DenoisingModel, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        return self.losses(model, batch, key)[:, None]

    def exported(
        self, model: DenoisingModel, levels: NDArray[np.float32], latent: ArrayLike
    ) -> DenoisingNetwork:
        """Return the network in numpy at levels ``[R, L, E]``; ``latent [R, 1, K, W]`` is noise."""
        none = np.zeros((len(levels), 1, levels.shape[2]), dtype=np.float32)
        conditions = np.concatenate([levels, none], axis=1)
        first, second = (
            layer.folded(conditions) for layer in (model.trunk.first, model.trunk.second)
        )
        ends = np.cumsum([self.action_width, self.steps])
        noise, step, context = np.split(first.weight.swapaxes(-1, -2), ends, axis=2)
        arrays = (
            noise,
            step + first.bias[:, :, None],
            context,
            second.weight.swapaxes(-1, -2),
            second.bias[:, :, None],
            np.asarray(model.head.weight).swapaxes(-1, -2)[:, None],
            np.asarray(model.head.bias)[:, None, None],
            np.asarray(latent),
        )
        return DenoisingNetwork(
            *(np.ascontiguousarray(array, dtype=np.float32) for array in arrays)
        )
