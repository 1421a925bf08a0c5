"""A network for the value of an action in a context."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from submax.networks.value_network import ValueNetwork
from submax.nn.choices import one_hot
from submax.nn.dense import Dense
from submax.nn.design import Design, Example


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

    def losses(self, model: ValueModel, batch: Example, key: jax.Array) -> jax.Array:
        """Cross-entropy, with dropout masks of its own for each example."""
        kept = 1 - self.dropout
        shape = (*batch.reward.shape[:-1], 2, self.hidden)
        masks = jax.random.bernoulli(key, kept, shape) / kept if self.dropout else jnp.ones(shape)
        return jax.vmap(self._loss, in_axes=(None, 0, 0))(model, batch, masks)

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
