"""A network with a normal distribution over each of its parameters."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.models.networks.slot_network import SlotNetwork
from submax.models.nn.designs.design import Design, Example

FIRST_DEVIATION = 0.05
"""Standard deviation of the parameters when training begins: small beside Glorot's weights, so that
the first gradients are not mostly noise."""


class VariationalModel(eqx.Module):
    """The posterior N(``mean``, exp(``log_deviation``)²) of a network's parameters, and its prior.

    Each of the first four fields has the form of the network. ``prior_share`` is the weight of the
    divergence from the prior in the loss of one row. The prior and its weight are not trained.
    """

    mean: Any
    log_deviation: Any
    prior_mean: Any
    prior_log_deviation: Any
    prior_share: Any


@dataclass(frozen=True)
class VariationalDesign(Design[VariationalModel]):
    """The design that maximizes E_q[log p(rows | θ)] − KL(q ‖ prior), with q and prior normal.

    θ are the parameters of the ``network``, whose design has log p as minus its loss. The first
    prior is N(0, s²) with s the ``prior_deviation``; later priors come with the parameters that
    training starts from.

    Reference: Nguyen et al. (2018); Blundell et al. (2015) for the gradient.
    """

    network: Design[Any]
    prior_deviation: float

    @property
    def sizes(self) -> tuple[int, ...]:  # type: ignore[override]  # those of the network
        """The numbers of choices of the slots."""
        return self.network.sizes

    @property
    def reals(self) -> int:  # type: ignore[override]  # that of the network
        """The number of real-valued parts of an action."""
        return self.network.reals

    @property
    def context_width(self) -> int:  # type: ignore[override]  # that of the network
        """The number of features of the context."""
        return self.network.context_width

    @property
    def reward_width(self) -> int:  # type: ignore[override]  # that of the network
        """The length of an encoded reward."""
        return self.network.reward_width

    def drawn(self, rng: np.random.Generator) -> VariationalModel:
        mean = self.network.drawn(rng)

        def alike(value: float) -> Any:
            return jax.tree.map(lambda leaf: np.full(leaf.shape, value, np.float32), mean)

        return VariationalModel(
            mean,
            alike(float(np.log(FIRST_DEVIATION))),
            alike(0.0),
            alike(float(np.log(self.prior_deviation))),
            np.zeros((), dtype=np.float32),
        )

    def losses(self, model: VariationalModel, batch: Example, key: jax.Array) -> jax.Array:
        """Return the loss of each row for one draw of θ, plus its share of the divergence."""
        keys = jax.random.split(key, 2)
        share = jax.lax.stop_gradient(model.prior_share)
        losses = self.network.losses(drawn_network(model, keys[0]), batch, keys[1])
        total: jax.Array = losses + share * divergence(model)
        return total

    def held_out_losses(
        self, model: VariationalModel, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        return self.network.held_out_losses(model.mean, batch, share, key)

    def exported(
        self, model: VariationalModel, levels: NDArray[np.float32], latent: ArrayLike
    ) -> SlotNetwork:
        """Return the network with the mean of the posterior as its parameters, in numpy."""
        network: Any = self.network
        exported: SlotNetwork = network.exported(model.mean, levels, latent)
        return exported


def drawn_network(model: VariationalModel, key: jax.Array) -> Any:
    """Return the network with parameters drawn from the posterior: θ = μ + σ ε."""
    mean, spread = _joined(model.mean), _joined(model.log_deviation)
    # One draw for all parameters is compiled in a fraction of the time of many small ones.
    vector = mean + jnp.exp(spread) * jax.random.normal(key, mean.shape)
    leaves, structure = jax.tree.flatten(model.mean)
    parts = jnp.split(vector, np.cumsum([leaf.size for leaf in leaves])[:-1])
    shaped = [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
    return jax.tree.unflatten(structure, shaped)


def divergence(model: VariationalModel) -> jax.Array:
    """Return KL(posterior ‖ prior), with no gradient by the prior: a scalar."""
    prior = (model.prior_mean, model.prior_log_deviation)
    prior_mean, prior_spread = (jax.lax.stop_gradient(_joined(part)) for part in prior)
    mean, spread = _joined(model.mean), _joined(model.log_deviation)
    square = jnp.exp(2 * (spread - prior_spread))
    apart = ((mean - prior_mean) * jnp.exp(-prior_spread)) ** 2
    return jnp.sum(prior_spread - spread + (square + apart - 1) / 2)


def _joined(network: Any) -> jax.Array:
    """Return all parameters of a network as one vector."""
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(network)])
