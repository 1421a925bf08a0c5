"""A network for one choice in each slot, without a latent variable."""

from dataclasses import dataclass

import equinox as eqx
import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.models.networks.slot_network import SlotNetwork
from submax.models.nn.designs.choices import log_prob, one_hot
from submax.models.nn.designs.design import Design, Example
from submax.models.nn.designs.folding import slot_network
from submax.models.nn.designs.reward_losses import reward_losses
from submax.models.nn.layers.dense import Dense
from submax.models.nn.layers.trunk import Trunk


class SoftmaxModel(eqx.Module):
    """A network from context and reward to the logits of the choices."""

    trunk: Trunk
    head: Dense

    def __call__(self, context: jax.Array, reward: jax.Array) -> jax.Array:
        """Return the logits ``[C]`` for a context ``[D]`` and an encoded reward ``[E]``."""
        return self.head(self.trunk(context, reward))


@dataclass(frozen=True)
class SoftmaxDesign(Design[SoftmaxModel]):
    """π(a | c, r) = Π_s softmax(h_s(c, r)), trained by maximum likelihood."""

    sizes: tuple[int, ...]
    context_width: int
    reward_width: int
    hidden: int
    injection: str
    reals: int = 0

    def drawn(self, rng: np.random.Generator) -> SoftmaxModel:
        return SoftmaxModel(
            Trunk.drawn(self.context_width, self.hidden, self.reward_width, self.injection, rng),
            Dense.drawn(self.hidden, sum(self.sizes), rng),
        )

    def losses(self, model: SoftmaxModel, batch: Example, key: jax.Array) -> jax.Array:
        """Return minus the log-likelihood of the choices."""

        def loss(example: Example) -> jax.Array:
            logits = model(example.context, example.reward)
            return -log_prob(logits, one_hot(example.action, self.sizes), self.sizes)

        return jax.vmap(loss)(batch)

    def held_out_losses(
        self, model: SoftmaxModel, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        """Return the training loss plus the loss of predicting the reward from the choices."""

        def log_prob_at(example: Example, reward: jax.Array) -> jax.Array:
            logits = model(example.context, reward)
            return log_prob(logits, one_hot(example.action, self.sizes), self.sizes)

        losses = self.losses(model, batch, key) + reward_losses(log_prob_at, batch, share)
        return losses[:, None]

    def exported(
        self, model: SoftmaxModel, levels: NDArray[np.float32], latent: ArrayLike
    ) -> SlotNetwork:
        """Return the network in numpy at levels ``[R, L, E]``; the latent variable has width 0."""
        return slot_network(model.trunk, model.head, levels, latent)
