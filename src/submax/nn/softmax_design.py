"""A network for one choice in each slot, without latent variable."""

from dataclasses import dataclass

import equinox as eqx
import jax
import numpy as np

from submax.networks.slot_network import SlotNetwork
from submax.nn.choices import log_prob, one_hot
from submax.nn.dense import Dense
from submax.nn.design import Design, Example
from submax.nn.folding import slot_network
from submax.nn.trunk import Trunk


class SoftmaxModel(eqx.Module):
    """Context and reward level → logits of the choices."""

    trunk: Trunk
    head: Dense

    def __call__(self, context: jax.Array, level: jax.Array) -> jax.Array:
        """``[D]`` and one-hot ``[L] -> [C]``."""
        return self.head(self.trunk(context, level))


@dataclass(frozen=True)
class SoftmaxDesign(Design[SoftmaxModel]):
    """π(a | c, r) = Π_s softmax(h_s(c, r)), trained by maximum likelihood."""

    sizes: tuple[int, ...]
    context_width: int
    levels: int
    hidden: int
    injection: str

    def drawn(self, key: jax.Array) -> SoftmaxModel:
        """A model with new parameters."""
        trunk, head = jax.random.split(key)
        return SoftmaxModel(
            Trunk.drawn(self.context_width, self.hidden, self.levels, self.injection, trunk),
            Dense.drawn(self.hidden, sum(self.sizes), head),
        )

    def losses(self, model: SoftmaxModel, batch: Example, key: jax.Array) -> jax.Array:
        """Minus the log-likelihood of the choices."""

        def loss(example: Example) -> jax.Array:
            logits = model(example.context, jax.nn.one_hot(example.level, self.levels))
            return -log_prob(logits, one_hot(example.action, self.sizes), self.sizes)

        return jax.vmap(loss)(batch)

    def exported(self, model: SoftmaxModel) -> SlotNetwork:
        """Plain arrays, from numpy parameters of all replicas; a latent variable of width 0."""
        replicas = model.head.bias.shape[0]
        return slot_network(model.trunk, model.head, np.zeros((replicas, 1, 1, 0)))
