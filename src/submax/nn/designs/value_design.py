"""A network for the value of an action in a context."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from submax.networks.value_network import ValueNetwork
from submax.nn.designs.choices import one_hot
from submax.nn.designs.design import Design, Example
from submax.nn.layers.dense import Dense

LEAST_STEPS = 300
"""The number of steps tuned for weak signals: policies look for the highest value, which is often
right long before the values are.
"""
CONFIDENCE = (1.0, 0.5, 0.25, 0.125)
"""Shares of a logit's distance from the mean at which held-out rows are evaluated. The lowest loss
counts, since a network that is too sure of itself may still put actions in the right order.
"""


class ValueModel(eqx.Module):
    """Choices and context → logit of the reward."""

    first: Dense
    second: Dense
    head: Dense

    def __call__(self, x: jax.Array, masks: jax.Array) -> jax.Array:
        """``[C + D]`` and the dropout masks of both hidden layers, ``[2, H]``, ``-> []``."""
        first = jax.nn.relu(self.first(x)) * masks[0]
        second = jax.nn.relu(self.second(first)) * masks[1]
        return self.head(second)[0]


@dataclass(frozen=True)
class ValueDesign(Design[ValueModel]):
    """σ(f(a, c)) is the reward scaled to 0 … 1, by cross-entropy.

    Each hidden unit is left out with probability
    ``dropout`` in training, and the others are scaled up.

    Reference: Gal and Ghahramani (2016).
    """

    sizes: tuple[int, ...]
    context_width: int
    hidden: int
    dropout: float
    reals: int = 0
    reward_width: int = 1

    def drawn(self, key: jax.Array) -> ValueModel:
        """A model with new parameters."""
        keys = jax.random.split(key, 3)
        return ValueModel(
            Dense.drawn(sum(self.sizes) + self.context_width, self.hidden, keys[0]),
            Dense.drawn(self.hidden, self.hidden, keys[1]),
            Dense.drawn(self.hidden, 1, keys[2]),
        )

    @property
    def least_steps(self) -> int:
        """As many as were tuned for weak signals."""
        return LEAST_STEPS

    def losses(self, model: ValueModel, batch: Example, key: jax.Array) -> jax.Array:
        """Cross-entropy, with dropout masks of its own for each example."""
        kept = 1 - self.dropout
        shape = (*batch.reward.shape[:-1], 2, self.hidden)
        masks = jax.random.bernoulli(key, kept, shape) / kept if self.dropout else jnp.ones(shape)
        return jax.vmap(self._loss, in_axes=(None, 0, 0))(model, batch, masks)

    def held_out_losses(
        self, model: ValueModel, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        """Cross-entropy of the whole network, without dropout, if it were less sure of itself."""
        masks = jnp.ones((2, self.hidden))
        middle = jnp.log(share[0]) - jnp.log1p(-share[0])
        parts = jnp.asarray(CONFIDENCE)

        def loss(example: Example) -> jax.Array:
            x = jnp.concatenate([one_hot(example.action, self.sizes), example.context])
            logit = middle + parts * (model(x, masks) - middle)
            return jax.nn.softplus(logit) - example.reward[0] * logit

        return jax.vmap(loss)(batch)

    def informed(self, model: ValueModel, share: jax.Array) -> ValueModel:
        """Every value is the mean reward: a head that begins at random prefers some actions."""
        head = model.head
        bias = jnp.log(share) - jnp.log1p(-share)
        return ValueModel(model.first, model.second, Dense(jnp.zeros_like(head.weight), bias))

    def _loss(self, model: ValueModel, example: Example, masks: jax.Array) -> jax.Array:
        x = jnp.concatenate([one_hot(example.action, self.sizes), example.context])
        logit = model(x, masks)
        return jax.nn.softplus(logit) - example.reward[0] * logit

    def exported(self, model: ValueModel) -> ValueNetwork:
        """Plain arrays, from numpy parameters; the first layer is parted in choices and context."""
        first = np.asarray(model.first.weight).swapaxes(-1, -2)
        choices, context = np.split(first, [sum(self.sizes)], axis=1)
        arrays = (
            choices,
            context,
            model.first.bias,
            np.asarray(model.second.weight).swapaxes(-1, -2),
            model.second.bias,
            model.head.weight[:, 0],
            model.head.bias[:, 0],
        )
        return ValueNetwork(*(np.ascontiguousarray(array, dtype=np.float32) for array in arrays))
