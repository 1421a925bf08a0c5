"""A policy network that is trained on logged decisions with importance weights."""

import functools
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.models.networks.density_head import outputs
from submax.models.networks.slot_network import SlotNetwork
from submax.models.nn.designs.choices import log_prob, one_hot
from submax.models.nn.designs.density import log_density
from submax.models.nn.designs.design import Design, Example
from submax.models.nn.designs.folding import slot_network
from submax.models.nn.layers.dense import Dense
from submax.models.nn.layers.trunk import Trunk


class PolicyModel(eqx.Module):
    """A network from a latent variable and the context to the outputs of a policy."""

    trunk: Trunk
    head: Dense

    def __call__(self, latent: jax.Array, context: jax.Array) -> jax.Array:
        """Return the outputs ``[O]`` for a latent ``[J]`` and a context ``[D]``."""
        return self.head(self.trunk(jnp.concatenate([latent, context]), jnp.zeros(0)))


@dataclass(frozen=True)
class PolicyDesign(Design[PolicyModel]):
    """The network of a policy π(a | c) = (1/Z) Σ_z p(a | c, z), with z ~ N(0, 1).

    Without a latent variable (``latent`` 0 and ``draws`` 1) π is p, a softmax in each slot. Z is
    ``draws``, and real-valued parts of an action have a mixture density of ``components``.

    The loss of a row with action a and context c is, with w = min(π(a | c) / q, W) held constant,

        −A w log π(a | c) − Σ_b π(b | c) G(b) − λ log π(u | c).

    A and log q, the first two numbers of the encoded reward, are the advantage and the logged
    log-probability of a; W is ``largest_weight``. G are the other numbers: either none, or a value
    for each joint action b. The gradient of the first two terms is that of the estimated expected
    reward. λ is ``regularization``, and u is a uniform action, so that the last term is λ times the
    divergence of π from the uniform policy, up to a constant.

    Reference: Williams (1992); Ionides (2008) for truncated importance weights.
    """

    sizes: tuple[int, ...]
    reals: int
    context_width: int
    hidden: int
    latent: int
    draws: int
    components: int
    regularization: float
    largest_weight: float
    listed: int

    @property
    def reward_width(self) -> int:  # type: ignore[override]  # computed from the other fields
        """The advantage, the logged log-probability, and the values of listed actions."""
        return 2 + self.listed

    def drawn(self, rng: np.random.Generator) -> PolicyModel:
        return PolicyModel(
            Trunk.drawn(self.latent + self.context_width, self.hidden, 0, "plain", rng),
            Dense.drawn(self.hidden, outputs(sum(self.sizes), self.reals, self.components), rng),
        )

    def informed(self, model: PolicyModel, share: NDArray[np.float32]) -> PolicyModel:
        """Return the model with a head of zeros, so that training begins at a uniform policy."""
        head = Dense(np.zeros_like(model.head.weight), np.zeros_like(model.head.bias))
        return PolicyModel(model.trunk, head)

    def losses(self, model: PolicyModel, batch: Example, key: jax.Array) -> jax.Array:
        """Return the loss of each row, with draws of z and u of its own."""
        keys = jax.random.split(key, 2)
        rows = batch.reward.shape[0]
        latent = jax.random.normal(keys[0], (rows, self.draws, self.latent))
        uniform = jax.random.uniform(keys[1], (rows, len(self.sizes) + self.reals))

        def loss(example: Example, latent: jax.Array, uniform: jax.Array) -> jax.Array:
            output = jax.vmap(model, in_axes=(0, None))(latent, example.context)
            spread = self.log_prob(output, self._uniform_action(uniform))
            return self.surrogate(output, example) - self.regularization * spread

        return jax.vmap(loss)(batch, latent, uniform)

    def held_out_losses(
        self, model: PolicyModel, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        """Return minus the estimated reward of the policy, A w + Σ_b π(b) G(b), and no λ."""
        latent = jax.random.normal(key, (self.draws, self.latent))

        def loss(example: Example) -> jax.Array:
            output = jax.vmap(model, in_axes=(0, None))(latent, example.context)
            weight = self._weight(self.log_prob(output, example.action), example)
            return -example.reward[0] * weight - self._listed_value(output, example)

        return jax.vmap(loss)(batch)[:, None]

    def surrogate(self, output: jax.Array, example: Example) -> jax.Array:
        """Return the loss without λ, of outputs ``[Z, O]`` for one row: a scalar."""
        log_prob = self.log_prob(output, example.action)
        weight = jax.lax.stop_gradient(self._weight(log_prob, example))
        return -example.reward[0] * weight * log_prob - self._listed_value(output, example)

    def log_prob(self, output: jax.Array, action: jax.Array) -> jax.Array:
        """Return log π of an action ``[S]``, averaged over the draws of z: ``[Z, O] -> []``."""

        def given(one: jax.Array) -> jax.Array:
            chosen = log_prob(one, one_hot(action, self.sizes), self.sizes)
            if not self.reals:
                return chosen
            numbers = action[len(self.sizes) :]
            return chosen + log_density(one[sum(self.sizes) :], numbers, self.components)

        return jax.nn.logsumexp(jax.vmap(given)(output)) - jnp.log(self.draws)

    def exported(
        self, model: PolicyModel, levels: NDArray[np.float32], latent: ArrayLike
    ) -> SlotNetwork:
        """Return the network in numpy; ``levels [R, 1, 0]`` are empty, ``latent [R, 1, Z, J]``."""
        return slot_network(model.trunk, model.head, levels, latent)

    def _weight(self, log_prob: jax.Array, example: Example) -> jax.Array:
        """Return min(π / q, W)."""
        largest = jnp.log(self.largest_weight)
        return jnp.exp(jnp.minimum(log_prob - example.reward[1], largest))

    def _listed_value(self, output: jax.Array, example: Example) -> jax.Array:
        """Return Σ_b π(b | c) G(b), or 0 if no actions are listed."""
        if not self.listed:
            return jnp.zeros(())
        parts, first = [], 0
        for size in self.sizes:
            parts.append(jax.nn.log_softmax(output[:, first : first + size]))
            first += size
        listing = jnp.asarray(_listed_choices(self.sizes), dtype=output.dtype)
        joint = jnp.exp(jnp.concatenate(parts, axis=1) @ listing.T).mean(axis=0)
        return joint @ example.reward[2:]

    def _uniform_action(self, uniform: jax.Array) -> jax.Array:
        """Return an action ``[S]`` from uniform numbers: choices, then numbers from 0 to 1."""
        choices = jnp.floor(uniform[: len(self.sizes)] * jnp.asarray(self.sizes, jnp.float32))
        return jnp.concatenate([choices, uniform[len(self.sizes) :]])


@functools.cache
def _listed_choices(sizes: tuple[int, ...]) -> NDArray[np.float32]:
    """Return the one-hot choices of every joint action, last slot fastest: ``[M, C]``."""
    listing = np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), axis=1)
    slots = [np.eye(size, dtype=np.float32)[listing[:, slot]] for slot, size in enumerate(sizes)]
    return np.concatenate(slots, axis=1)
