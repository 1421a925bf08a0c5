"""A network that predicts the choice of each slot from the choices of the slots before it."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.models.networks.autoregressive_network import AutoregressiveNetwork
from submax.models.nn.designs.choices import one_hot
from submax.models.nn.designs.design import Design, Example
from submax.models.nn.designs.reward_losses import reward_losses
from submax.models.nn.layers.dense import Dense
from submax.models.nn.layers.trunk import Trunk


class AutoregressiveModel(eqx.Module):
    """A network from earlier choices, slot, context and reward to the logits of all choices."""

    trunk: Trunk
    head: Dense

    def __call__(self, x: jax.Array, reward: jax.Array) -> jax.Array:
        """Return the logits ``[C]`` for inputs ``[C + S + D]`` and an encoded reward ``[E]``."""
        return self.head(self.trunk(x, reward))


@dataclass(frozen=True)
class AutoregressiveDesign(Design[AutoregressiveModel]):
    """π(a | c, r) = Π_s p(a_s | a_1 … a_{s−1}, c, r), trained by maximum likelihood.

    For every slot s the network reads the one-hot choices of the slots before s (zeros for the
    others), the one-hot s, the context and the reward; the logits of slot s count.
    """

    sizes: tuple[int, ...]
    context_width: int
    reward_width: int
    hidden: int
    injection: str
    reals: int = 0

    def drawn(self, rng: np.random.Generator) -> AutoregressiveModel:
        inputs = sum(self.sizes) + len(self.sizes) + self.context_width
        return AutoregressiveModel(
            Trunk.drawn(inputs, self.hidden, self.reward_width, self.injection, rng),
            Dense.drawn(self.hidden, sum(self.sizes), rng),
        )

    def losses(self, model: AutoregressiveModel, batch: Example, key: jax.Array) -> jax.Array:
        """Return minus the log-likelihood of the choices."""
        return jax.vmap(lambda example: -self.log_prob(model, example, example.reward))(batch)

    def held_out_losses(
        self, model: AutoregressiveModel, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        """Return the training loss plus the loss of predicting the reward from the choices."""

        def log_prob_at(example: Example, reward: jax.Array) -> jax.Array:
            return self.log_prob(model, example, reward)

        losses = self.losses(model, batch, key) + reward_losses(log_prob_at, batch, share)
        return losses[:, None]

    def log_prob(
        self, model: AutoregressiveModel, example: Example, reward: jax.Array
    ) -> jax.Array:
        """Return the log-probability of an example's action at an encoded reward: a scalar."""
        slot_of = jnp.asarray(np.repeat(np.arange(len(self.sizes)), self.sizes))
        slots = jnp.arange(len(self.sizes))[:, None]
        chosen = one_hot(example.action, self.sizes)
        before = jnp.where(slot_of < slots, chosen, 0.0)
        context = jnp.broadcast_to(example.context, (len(self.sizes), self.context_width))
        inputs = jnp.concatenate([before, jnp.eye(len(self.sizes)), context], axis=1)
        logits = jax.vmap(model, in_axes=(0, None))(inputs, reward)
        own = jnp.where(slot_of == slots, logits, -jnp.inf)
        picked = jnp.where(slot_of == slots, chosen * logits, 0.0)
        return picked.sum() - jax.nn.logsumexp(own, axis=1).sum()

    def exported(
        self, model: AutoregressiveModel, levels: NDArray[np.float32], latent: ArrayLike
    ) -> AutoregressiveNetwork:
        """Return the network in numpy at levels ``[R, L, E]``; ``latent`` has width 0."""
        first, second = model.trunk.first.folded(levels), model.trunk.second.folded(levels)
        ends = np.cumsum([sum(self.sizes), len(self.sizes)])
        choices, slots, context = np.split(first.weight.swapaxes(-1, -2), ends, axis=2)
        arrays = (
            choices,
            slots + first.bias[:, :, None],
            context,
            second.weight.swapaxes(-1, -2),
            second.bias[:, :, None],
            np.asarray(model.head.weight).swapaxes(-1, -2)[:, None],
            np.asarray(model.head.bias)[:, None, None],
        )
        return AutoregressiveNetwork(
            *(np.ascontiguousarray(array, dtype=np.float32) for array in arrays)
        )
