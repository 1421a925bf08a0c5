"""Designs of networks beyond the paper, in JAX."""

import functools
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from submax.models.nn.designs import LEAST_STEPS, Design, Example, log_prob, one_hot
from submax.models.nn.reward_injection import Dense, Network, contiguous
from submax.research.rivals.value_networks import ValueNetwork


@dataclass(frozen=True)
class PolicyDesign(Design[Network]):
    """The network of a policy π(a | c), a softmax in each slot, that follows a reward gradient.

    The loss of a row with action a and context c is, with w = min(π(a | c) / q, W) held constant,

        −A w log π(a | c) − λ log π(u | c),  or  −Σ_b π(b | c) G(b) − λ log π(u | c)

    with ``listed`` joint actions b. The encoded reward has the advantage A and log q, the logged
    log-probability of a, or the value G of each joint action; W is ``largest_weight``. The gradient
    of the first term is that of the estimated expected reward. λ is ``regularization``, and u is a
    uniform action, so the last term is λ times the divergence of π from the uniform policy, up to a
    constant.

    Reference: Williams (1992); Ionides (2008) for truncated importance weights.
    """

    sizes: tuple[int, ...]
    context_width: int
    hidden: int
    regularization: float
    largest_weight: float
    listed: int
    reals: int = 0

    @property
    def reward_width(self) -> int:  # type: ignore[override]  # computed from the other fields
        """The advantage and the logged log-probability, or the values of listed actions."""
        return self.listed or 2

    def drawn(self, rng: np.random.Generator) -> Network:
        return Network.drawn(self.context_width, sum(self.sizes), self.hidden, 0, "plain", rng)

    def output(self, model: Network, context: jax.Array) -> jax.Array:
        """Return the logits ``[C]`` for a context ``[D]``."""
        return model(context, jnp.zeros(0))

    def informed(self, model: Network, share: NDArray[np.float32]) -> Network:
        """Return the model with a head of zeros, so training begins at a uniform policy."""
        head = Dense(np.zeros_like(model.head.weight), np.zeros_like(model.head.bias))
        return Network(model.trunk, head)

    def losses(self, model: Network, batch: Example, key: jax.Array) -> jax.Array:
        shape = (batch.reward.shape[0], len(self.sizes))
        uniform = jax.random.uniform(jax.random.split(key)[1], shape)
        actions = jnp.floor(uniform * jnp.asarray(self.sizes, jnp.float32))

        def loss(example: Example, uniform: jax.Array) -> jax.Array:
            output = self.output(model, example.context)
            spread = self.log_prob(output, uniform)
            return self.surrogate(output, example) - self.regularization * spread

        return jax.vmap(loss)(batch, actions)

    def held_out_losses(
        self, model: Network, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        """Return minus the estimated reward of the policy, A w or Σ_b π(b) G(b), and no λ."""

        def loss(example: Example) -> jax.Array:
            output = self.output(model, example.context)
            if self.listed:
                return -self._listed_value(output, example)
            weight = self._weight(self.log_prob(output, example.action), example)
            return -example.reward[0] * weight

        return jax.vmap(loss)(batch)[:, None]

    def surrogate(self, output: jax.Array, example: Example) -> jax.Array:
        """Return the loss without λ, of logits ``[C]`` for one row: a scalar."""
        if self.listed:
            return -self._listed_value(output, example)
        log_prob = self.log_prob(output, example.action)
        weight = jax.lax.stop_gradient(self._weight(log_prob, example))
        return -example.reward[0] * weight * log_prob

    def log_prob(self, output: jax.Array, action: jax.Array) -> jax.Array:
        """Return log π of an action ``[S]`` from logits ``[C]``."""
        return log_prob(output, one_hot(action, self.sizes), self.sizes)

    def _weight(self, log_prob: jax.Array, example: Example) -> jax.Array:
        """Return min(π / q, W)."""
        largest = jnp.log(self.largest_weight)
        return jnp.exp(jnp.minimum(log_prob - example.reward[1], largest))

    def _listed_value(self, output: jax.Array, example: Example) -> jax.Array:
        """Return Σ_b π(b | c) G(b)."""
        parts = jnp.split(output, np.cumsum(self.sizes)[:-1])
        listing = jnp.asarray(_listed_choices(self.sizes), dtype=output.dtype)
        joint = jnp.exp(listing @ jnp.concatenate([jax.nn.log_softmax(part) for part in parts]))
        return joint @ example.reward


@functools.cache
def _listed_choices(sizes: tuple[int, ...]) -> NDArray[np.float32]:
    """Return the one-hot choices of every joint action, last slot fastest: ``[M, C]``."""
    listing = np.stack(np.unravel_index(np.arange(int(np.prod(sizes))), sizes), axis=1)
    slots = [np.eye(size, dtype=np.float32)[listing[:, slot]] for slot, size in enumerate(sizes)]
    return np.concatenate(slots, axis=1)


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


def cross_entropy(logit: jax.Array, example: Example) -> jax.Array:
    """Return that of the reward, which is between 0 and 1."""
    return jax.nn.softplus(logit) - example.reward[0] * logit


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

    least_steps = LEAST_STEPS

    def losses(self, model: ValueModel, batch: Example, key: jax.Array) -> jax.Array:
        """Return the cross-entropy, with separate dropout masks for each example."""
        kept = 1 - self.dropout
        shape = (*batch.reward.shape[:-1], 2, self.hidden)
        masks = jax.random.bernoulli(key, kept, shape) / kept if self.dropout else jnp.ones(shape)

        def loss(example: Example, masks: jax.Array) -> jax.Array:
            return cross_entropy(self._logit(model, example, masks), example)

        return jax.vmap(loss)(batch, masks)

    def held_out_losses(
        self, model: ValueModel, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        """Return the cross-entropy without dropout, by factor of ``CONFIDENCE``: ``[B, 4]``."""
        masks = jnp.ones((2, self.hidden))
        mean_logit = jnp.log(share[0]) - jnp.log1p(-share[0])
        factors = jnp.asarray(CONFIDENCE)

        def loss(example: Example) -> jax.Array:
            logit = self._logit(model, example, masks)
            return cross_entropy(mean_logit + factors * (logit - mean_logit), example)

        return jax.vmap(loss)(batch)

    def informed(self, model: ValueModel, share: NDArray[np.float32]) -> ValueModel:
        """Return the model with a head by which every action has the mean reward as its value.

        With a random head some actions would have higher values before any training.
        """
        head = model.head
        bias = np.log(share) - np.log1p(-share)
        return ValueModel(model.first, model.second, Dense(np.zeros_like(head.weight), bias))

    def _logit(self, model: ValueModel, example: Example, masks: jax.Array) -> jax.Array:
        x = jnp.concatenate([one_hot(example.action, self.sizes), example.context])
        return model(x, masks)

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
        return ValueNetwork(*contiguous(arrays))
