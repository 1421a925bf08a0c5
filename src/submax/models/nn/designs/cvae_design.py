"""A conditional variational autoencoder over joint actions of choices and numbers."""

from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.models.networks.density_head import outputs
from submax.models.networks.slot_network import SlotNetwork
from submax.models.nn.designs.choices import features, log_prob, one_hot
from submax.models.nn.designs.density import log_density
from submax.models.nn.designs.design import Design, Example
from submax.models.nn.designs.folding import slot_network
from submax.models.nn.designs.reward_losses import reward_losses
from submax.models.nn.layers.dense import Dense
from submax.models.nn.layers.trunk import Trunk

LEAST_STEPS = 300
"""Smallest number of training steps from new parameters, tuned for weak signals. Earlier the latent
variable carries no information yet, and a held-out loss that does not decrease means little.
"""
LARGEST_LINEAR_LOG_DEVIATION = 2.0
"""Beyond this ln σ grows only logarithmically: e² ≈ 7 is far wider than the prior's σ = 1."""
HELD_OUT_DRAWS = 8
"""Number of latent draws with which held-out rows are evaluated."""


class Encoder(eqx.Module):
    """q(z | a, c, r) = N(μ, σ²), with μ and σ from one trunk."""

    trunk: Trunk
    mean: Dense
    log_deviation: Dense

    def __call__(
        self, action: jax.Array, context: jax.Array, reward: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Return μ and ln σ ``[J]`` for an action ``[C + d]``, context ``[D]``, reward ``[E]``."""
        hidden = self.trunk(jnp.concatenate([action, context]), reward)
        return self.mean(hidden), _bounded(self.log_deviation(hidden))


class Decoder(eqx.Module):
    """p(a | c, r, z): one trunk for a softmax in each slot and a mixture density over numbers."""

    trunk: Trunk
    head: Dense

    def __call__(self, latent: jax.Array, context: jax.Array, reward: jax.Array) -> jax.Array:
        """Return the outputs ``[O]`` for a latent ``[J]``, context ``[D]`` and reward ``[E]``."""
        return self.head(self.trunk(jnp.concatenate([latent, context]), reward))


class CVAEModel(eqx.Module):
    """Both networks of the autoencoder."""

    encoder: Encoder
    decoder: Decoder


@dataclass(frozen=True)
class CVAEDesign(Design[CVAEModel]):
    """The design that maximizes the evidence bound E_q[log p(a | c, r, z)] − β KL(q ‖ N(0, 1)).

    β is the constant ``kl_weight``, and the latent variable z has ``latent`` dimensions (J). If an
    action has ``reals`` real-valued parts, their mixture density has ``components`` for each z.

    Reference: Xu et al. (2024), section 4.3 and figure cvae.
    """

    sizes: tuple[int, ...]
    reals: int
    context_width: int
    reward_width: int
    hidden: int
    latent: int
    injection: str
    kl_weight: float
    components: int

    def drawn(self, rng: np.random.Generator) -> CVAEModel:
        choices, width = sum(self.sizes), self.context_width
        shape = (self.hidden, self.reward_width, self.injection)
        return CVAEModel(
            Encoder(
                Trunk.drawn(choices + self.reals + width, *shape, rng),
                Dense.drawn(self.hidden, self.latent, rng),
                Dense.drawn(self.hidden, self.latent, rng),
            ),
            Decoder(
                Trunk.drawn(self.latent + width, *shape, rng),
                Dense.drawn(self.hidden, outputs(choices, self.reals, self.components), rng),
            ),
        )

    @property
    def least_steps(self) -> int:
        return LEAST_STEPS

    def losses(self, model: CVAEModel, batch: Example, key: jax.Array) -> jax.Array:
        """Return minus the evidence bound, with one draw of z for each example."""
        noise = jax.random.normal(key, (*batch.reward.shape[:-1], self.latent))
        return jax.vmap(self._loss, in_axes=(None, 0, 0))(model, batch, noise)

    def held_out_losses(
        self, model: CVAEModel, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        """Return minus the evidence bound plus the loss of predicting the reward from the action.

        The second loss uses p(a | c, r) = (1/Z) Σ_z p(a | c, r, z), with the same draws z ~ N(0, 1)
        for every reward.
        """
        latent = jax.random.normal(key, (HELD_OUT_DRAWS, self.latent))

        def log_prob_at(example: Example, reward: jax.Array) -> jax.Array:
            def given(one: jax.Array) -> jax.Array:
                return self._log_prob(model.decoder(one, example.context, reward), example.action)

            return jax.nn.logsumexp(jax.vmap(given)(latent)) - jnp.log(HELD_OUT_DRAWS)

        losses = self.losses(model, batch, key) + reward_losses(log_prob_at, batch, share)
        return losses[:, None]

    def _loss(self, model: CVAEModel, example: Example, noise: jax.Array) -> jax.Array:
        action = features(example.action, self.sizes)
        mean, log_deviation = model.encoder(action, example.context, example.reward)
        deviation = jnp.exp(log_deviation)
        latent = mean + deviation * noise
        output = model.decoder(latent, example.context, example.reward)
        divergence = jnp.sum((mean**2 + deviation**2 - 1) / 2 - log_deviation)
        return self.kl_weight * divergence - self._log_prob(output, example.action)

    def _log_prob(self, output: jax.Array, action: jax.Array) -> jax.Array:
        chosen = log_prob(output, one_hot(action, self.sizes), self.sizes)
        if not self.reals:
            return chosen
        numbers = action[len(self.sizes) :]
        return chosen + log_density(output[sum(self.sizes) :], numbers, self.components)

    def exported(
        self, model: CVAEModel, levels: NDArray[np.float32], latent: ArrayLike
    ) -> SlotNetwork:
        """Return the decoder in numpy, at levels ``[R, L, E]`` and draws ``[R, L or 1, Z, J]``."""
        return slot_network(model.decoder.trunk, model.decoder.head, levels, latent)


def _bounded(log_deviation: jax.Array) -> jax.Array:
    """Bound ln σ from above by letting it grow only logarithmically beyond a limit.

    ln σ is linear in the features. Without the bound, σ² would overflow for a context a hundred
    deviations from the mean, and make the loss of the whole minibatch infinite.
    """
    excess = jnp.maximum(log_deviation - LARGEST_LINEAR_LOG_DEVIATION, 0.0)
    return jnp.minimum(log_deviation, LARGEST_LINEAR_LOG_DEVIATION) + jnp.log1p(excess)
