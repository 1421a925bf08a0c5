"""A policy network that is trained on pairs of a preferred and a rejected decision."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.models.networks.slot_network import SlotNetwork
from submax.models.nn.designs.choices import log_prob, one_hot
from submax.models.nn.designs.design import Design, Example
from submax.models.nn.designs.folding import slot_network
from submax.models.nn.designs.policy_design import PolicyModel
from submax.models.nn.layers.dense import Dense
from submax.models.nn.layers.trunk import Trunk


@dataclass(frozen=True)
class PreferenceDesign(Design[PolicyModel]):
    """The network of a policy p(a | c), a softmax in each slot, that is trained on pairs.

    The loss of a pair is −log σ(±β (log p(a | c) / q − log p(a′ | c′) / q′)), with + if the first
    decision is preferred and − if the second one is. β is ``strength``. The first decision is the
    row's. The encoded reward has the context c′ and the action a′ of the second one, log q − log q′
    and the sign, which is 0 if the row has no partner.

    Reference: Rafailov et al. (2023), equation 7.
    """

    sizes: tuple[int, ...]
    context_width: int
    hidden: int
    strength: float
    reals: int = 0

    @property
    def reward_width(self) -> int:  # type: ignore[override]  # computed from the other fields
        """The other context, the other action, the difference of log-probabilities, the sign."""
        return self.context_width + len(self.sizes) + 2

    def drawn(self, rng: np.random.Generator) -> PolicyModel:
        return PolicyModel(
            Trunk.drawn(self.context_width, self.hidden, 0, "plain", rng),
            Dense.drawn(self.hidden, sum(self.sizes), rng),
        )

    def informed(self, model: PolicyModel, share: NDArray[np.float32]) -> PolicyModel:
        """Return the model with a head of zeros, so that training begins at a uniform policy."""
        head = Dense(np.zeros_like(model.head.weight), np.zeros_like(model.head.bias))
        return PolicyModel(model.trunk, head)

    def losses(self, model: PolicyModel, batch: Example, key: jax.Array) -> jax.Array:
        """Return the loss of each pair."""

        def loss(example: Example) -> jax.Array:
            context, action, _ = jnp.split(
                example.reward, [self.context_width, self.context_width + len(self.sizes)]
            )
            none = jnp.zeros(0)
            first = model(none, example.context)
            return self.pair_loss(first, model(none, context), example, action)

        return jax.vmap(loss)(batch)

    def pair_loss(
        self, first: jax.Array, second: jax.Array, example: Example, action: jax.Array
    ) -> jax.Array:
        """Return the loss of one pair from the logits ``[C]`` in its two contexts: a scalar."""
        margin = log_prob(first, one_hot(example.action, self.sizes), self.sizes)
        margin -= log_prob(second, one_hot(action, self.sizes), self.sizes)
        margin -= example.reward[-2]
        sign = example.reward[-1]
        return jnp.abs(sign) * jax.nn.softplus(-self.strength * sign * margin)

    def held_out_losses(
        self, model: PolicyModel, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        return self.losses(model, batch, key)[:, None]

    def exported(
        self, model: PolicyModel, levels: NDArray[np.float32], latent: ArrayLike
    ) -> SlotNetwork:
        """Return the network in numpy; ``levels`` and ``latent`` have width 0."""
        return slot_network(model.trunk, model.head, levels, latent)
