"""A network for the expected reward of an action in a context."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from submax.models.networks.value_network import ValueNetwork
from submax.models.nn.designs.choices import one_hot
from submax.models.nn.designs.design import Design, Example
from submax.models.nn.layers.dense import Dense

LEAST_STEPS = 300
"""Smallest number of training steps from new parameters, tuned for rewards that carry little
information. The held-out loss does not stop training earlier, because it judges the values, and
policies need only their order, which is often right long before the values are.
"""
CONFIDENCE = (1.0, 0.5, 0.25, 0.125)
"""Factors by which logits are shrunk towards the logit of the mean reward, before the loss of
held-out rows is computed. Training stops by the lowest of the four losses, because a network with
too large differences between logits may still order actions correctly.
"""


class ValueModel(eqx.Module):
    """A network from choices and context to the logit of the expected reward."""

    first: Dense
    second: Dense
    head: Dense

    def __call__(self, x: jax.Array, masks: jax.Array) -> jax.Array:
        """Return the logit, a scalar, for the inputs ``x [C + D]``.

        The hidden units of the two layers are multiplied by ``masks [2, H]``.
        """
        first = jax.nn.relu(self.first(x)) * masks[0]
        second = jax.nn.relu(self.second(first)) * masks[1]
        return self.head(second)[0]


@dataclass(frozen=True)
class ValueDesign(Design[ValueModel]):
    """A network f with two hidden layers; σ(f(a, c)) estimates the expected reward.

    Rewards are scaled to the range from 0 to 1, and the loss is their cross-entropy. In training
    each hidden unit is dropped with probability ``dropout``, and the others are multiplied by
    1 / (1 − dropout).

    ``sizes`` are the numbers of choices of the slots, and ``hidden`` is the number of units of each
    hidden layer. Actions have no real-valued parts, so ``reals`` is 0. A reward is encoded as a
    single number, so ``reward_width`` is 1, and ``share`` is the mean of the scaled rewards.

    Reference: Gal and Ghahramani (2016).
    """

    sizes: tuple[int, ...]
    context_width: int
    hidden: int
    dropout: float
    reals: int = 0
    reward_width: int = 1

    def drawn(self, rng: np.random.Generator) -> ValueModel:
        return ValueModel(
            Dense.drawn(sum(self.sizes) + self.context_width, self.hidden, rng),
            Dense.drawn(self.hidden, self.hidden, rng),
            Dense.drawn(self.hidden, 1, rng),
        )

    @property
    def least_steps(self) -> int:
        return LEAST_STEPS

    def losses(self, model: ValueModel, batch: Example, key: jax.Array) -> jax.Array:
        """Return the cross-entropy, with separate dropout masks for each example."""
        kept = 1 - self.dropout
        shape = (*batch.reward.shape[:-1], 2, self.hidden)
        masks = jax.random.bernoulli(key, kept, shape) / kept if self.dropout else jnp.ones(shape)
        return jax.vmap(self._loss, in_axes=(None, 0, 0))(model, batch, masks)

    def held_out_losses(
        self, model: ValueModel, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        """Return the cross-entropy without dropout, by factor of ``CONFIDENCE``: ``[B, 4]``."""
        masks = jnp.ones((2, self.hidden))
        mean_logit = jnp.log(share[0]) - jnp.log1p(-share[0])
        factors = jnp.asarray(CONFIDENCE)

        def loss(example: Example) -> jax.Array:
            x = jnp.concatenate([one_hot(example.action, self.sizes), example.context])
            logit = mean_logit + factors * (model(x, masks) - mean_logit)
            return jax.nn.softplus(logit) - example.reward[0] * logit

        return jax.vmap(loss)(batch)

    def informed(self, model: ValueModel, share: NDArray[np.float32]) -> ValueModel:
        """Return the model with a head by which every action has the mean reward as its value.

        With a random head some actions would have higher values before any training.
        """
        head = model.head
        bias = np.log(share) - np.log1p(-share)
        return ValueModel(model.first, model.second, Dense(np.zeros_like(head.weight), bias))

    def _loss(self, model: ValueModel, example: Example, masks: jax.Array) -> jax.Array:
        x = jnp.concatenate([one_hot(example.action, self.sizes), example.context])
        logit = model(x, masks)
        return jax.nn.softplus(logit) - example.reward[0] * logit

    def exported(self, model: ValueModel) -> ValueNetwork:
        """Return the networks of all replicas as numpy arrays.

        Here the arrays of ``model`` have a first axis R, as from `restored`. The weights of the
        first layer are split into those of the choices and those of the context.
        """
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
