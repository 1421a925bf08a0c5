"""A conditional variational auto-encoder over slots."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
from numpy.typing import ArrayLike

from submax.networks.slot_network import SlotNetwork
from submax.nn.choices import log_prob, one_hot
from submax.nn.dense import Dense
from submax.nn.design import Design, Example
from submax.nn.folding import slot_network
from submax.nn.trunk import Trunk


class Encoder(eqx.Module):
    """q(z | a, c, r) = N(μ, σ²), with μ and σ from one trunk."""

    trunk: Trunk
    mean: Dense
    log_deviation: Dense

    def __call__(
        self, chosen: jax.Array, context: jax.Array, level: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """``[C]``, ``[D]`` and one-hot ``[L] -> μ [J]`` and ``ln σ [J]``."""
        hidden = self.trunk(jnp.concatenate([chosen, context]), level)
        return self.mean(hidden), self.log_deviation(hidden)


class Decoder(eqx.Module):
    """p(a | c, r, z) = Π_s softmax(h_s), with all h from one trunk."""

    trunk: Trunk
    head: Dense

    def __call__(self, latent: jax.Array, context: jax.Array, level: jax.Array) -> jax.Array:
        """``[J]``, ``[D]`` and one-hot ``[L] -> [C]``."""
        return self.head(self.trunk(jnp.concatenate([latent, context]), level))


class CVAEModel(eqx.Module):
    """Encoder and decoder."""

    encoder: Encoder
    decoder: Decoder


@dataclass(frozen=True)
class CVAEDesign(Design[CVAEModel]):
    """Trained by the evidence bound E_q[log p(a | c, r, z)] − β KL(q ‖ N(0, 1)).

    β is ``kl_weight``, a constant. J is ``latent``.

    Reference: Xu et al. (2024), section 4.3 and figure cvae.
    """

    sizes: tuple[int, ...]
    context_width: int
    levels: int
    hidden: int
    latent: int
    injection: str
    kl_weight: float

    def drawn(self, key: jax.Array) -> CVAEModel:
        """A model with new parameters."""
        keys = jax.random.split(key, 5)
        choices, width = sum(self.sizes), self.context_width
        shape = (self.hidden, self.levels, self.injection)
        return CVAEModel(
            Encoder(
                Trunk.drawn(choices + width, *shape, keys[0]),
                Dense.drawn(self.hidden, self.latent, keys[1]),
                Dense.drawn(self.hidden, self.latent, keys[2]),
            ),
            Decoder(
                Trunk.drawn(self.latent + width, *shape, keys[3]),
                Dense.drawn(self.hidden, choices, keys[4]),
            ),
        )

    def losses(self, model: CVAEModel, batch: Example, key: jax.Array) -> jax.Array:
        """Minus the evidence bound, with one draw of z for each example."""
        noise = jax.random.normal(key, (*batch.level.shape, self.latent))
        return jax.vmap(self._loss, in_axes=(None, 0, 0))(model, batch, noise)

    def _loss(self, model: CVAEModel, example: Example, noise: jax.Array) -> jax.Array:
        level = jax.nn.one_hot(example.level, self.levels)
        chosen = one_hot(example.action, self.sizes)
        mean, log_deviation = model.encoder(chosen, example.context, level)
        deviation = jnp.exp(log_deviation)
        latent = mean + deviation * noise
        logits = model.decoder(latent, example.context, level)
        divergence = jnp.sum((mean**2 + deviation**2 - 1) / 2 - log_deviation)
        return self.kl_weight * divergence - log_prob(logits, chosen, self.sizes)

    def exported(self, model: CVAEModel, latent: ArrayLike) -> SlotNetwork:
        """The decoder at these draws ``[R, L or 1, Z, J]``, from numpy parameters."""
        return slot_network(model.decoder.trunk, model.decoder.head, latent)
