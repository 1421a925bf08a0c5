"""Designs of the networks: softmax and CVAE in JAX."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.models.networks.choices import SlotNetwork
from submax.models.networks.densities import (
    FIRST_WIDTH,
    LOG_NARROWEST,
    LOG_RANGE,
    REACH,
    first_locations,
    outputs,
)
from submax.models.nn.reward_injection import Dense, Network, Trunk


def features(action: jax.Array, sizes: tuple[int, ...]) -> jax.Array:
    """Return the one-hot choices of all slots, then the real-valued parts: ``[S] -> [C + d]``.

    A real-valued part lies between 0 and 1 in ``action``, and between −1 and 1 in the result.
    """
    choices = one_hot(action, sizes)
    return jnp.concatenate([choices, 2 * action[len(sizes) :] - 1])


def one_hot(action: jax.Array, sizes: tuple[int, ...]) -> jax.Array:
    """Return the one-hot choices of all slots, one slot after the other: ``[S] -> [C]``."""
    slots = [jax.nn.one_hot(action[slot].astype(int), size) for slot, size in enumerate(sizes)]
    return jnp.concatenate([*slots, jnp.zeros(0)])


def log_prob(logits: jax.Array, chosen: jax.Array, sizes: tuple[int, ...]) -> jax.Array:
    """Return Σ_slots log softmax(``logits`` of the slot) at the slot's choice.

    ``logits [C]`` and the one-hot choices ``chosen [C]`` have one slot after the other. An
    accelerator computes all slots together, which takes a fraction of the operations.
    """
    if len(sizes) > 1 and jax.default_backend() != "cpu":
        return log_prob_together(logits, chosen, sizes)
    total, first = jnp.zeros(()), 0
    for size in sizes:
        slot = logits[first : first + size]
        total += slot @ chosen[first : first + size] - jax.nn.logsumexp(slot)
        first += size
    return total


def log_prob_together(logits: jax.Array, chosen: jax.Array, sizes: tuple[int, ...]) -> jax.Array:
    """Return `log_prob` by one operation for all slots, each of which masks the other ones."""
    count = sum(sizes)
    slot_of = np.repeat(np.arange(len(sizes)), sizes)
    in_slot = slot_of == np.arange(len(sizes))[:, None]
    masked = jnp.where(in_slot, logits[:count], -jnp.inf)
    return (logits[:count] * chosen).sum() - jax.nn.logsumexp(masked, axis=1).sum()


def log_density(output: jax.Array, numbers: jax.Array, components: int) -> jax.Array:
    """Return log Σ_k α_k Π_j f(x_j; m_kj, s_kj): ``[K (1 + 2d)]`` and numbers ``[d] -> []``.

    This is the density of `MixtureDensity`, which explains f.
    """
    reals = numbers.shape[0]
    end = components + components * reals
    chances, places, widths = jnp.split(output, [components, end])
    shape = (components, reals)
    location = jnp.asarray(first_locations(components, reals), dtype=output.dtype)
    location += REACH * jnp.tanh(places / REACH).reshape(shape)
    share = jax.nn.sigmoid(widths + FIRST_WIDTH).reshape(shape)
    log_scale = LOG_NARROWEST + LOG_RANGE * share
    scale = jnp.exp(log_scale)
    point = (numbers - location) / scale
    inside = jax.nn.log_sigmoid((1 - location) / scale) + jax.nn.log_sigmoid(location / scale)
    inside += jnp.log(-jnp.expm1(-1 / scale)) + log_scale
    terms = jax.nn.log_sigmoid(point) + jax.nn.log_sigmoid(-point) - inside
    return jax.nn.logsumexp(jax.nn.log_softmax(chances) + terms.sum(axis=1))


Model = TypeVar("Model")


class Example(NamedTuple):
    """One row or a batch: ``context [..., D]``, ``action [..., S]``, encoded ``reward [..., E]``.

    Choices are whole numbers as floats; real-valued parts of an action lie between 0 and 1.
    """

    context: jax.Array
    action: jax.Array
    reward: jax.Array

    @classmethod
    def of(cls, rows: jax.Array, design: "Design[Any]") -> "tuple[Example, jax.Array]":
        """Split rows of minibatches, ``[..., D + S + E + 1]``, into examples and weights."""
        width = design.context_width
        end = width + len(design.sizes) + design.reals
        return cls(rows[..., :width], rows[..., width:end], rows[..., end:-1]), rows[..., -1]


class Design(ABC, Generic[Model]):
    """The architecture of a network, and its loss: a frozen dataclass, compiled only once.

    A model is an Equinox module whose leaves are all trainable parameters.
    """

    sizes: tuple[int, ...]
    reals: int
    context_width: int
    reward_width: int

    @property
    def columns(self) -> int:
        return self.context_width + len(self.sizes) + self.reals + self.reward_width + 1

    @abstractmethod
    def drawn(self, rng: np.random.Generator) -> Model:
        """Return a model with random parameters, drawn by numpy, which compiles nothing."""

    @abstractmethod
    def losses(self, model: Model, batch: Example, key: jax.Array) -> jax.Array:
        """Return the training loss of each example of a batch: ``[B]``."""

    def log_prob_at(
        self, model: Model, key: jax.Array
    ) -> Callable[[Example, jax.Array], jax.Array]:
        """Return the log-probability of an example's action at any encoded reward, a function.

        Only `held_out_losses` asks for it, if it is not overridden.
        """
        raise NotImplementedError

    def held_out_losses(
        self, model: Model, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        """Return T losses of each held-out example, ``[B, T]``; the lowest mean should decrease.

        By default it is one, the training loss − log (p(a | c, r) / Σ_e p_e p(a | c, e)), where
        ``share [E]`` is p_e, how often bin edge e occurs. By Bayes' rule the logarithm is
        log p(r | a, c) plus a term that does not depend on the network, if the distribution of
        rewards is the same in every context. The likelihood of the actions alone would favour a
        network that imitates the logging policy, and that of the rewards alone one that does not
        model it at all.
        """
        log_prob_at = self.log_prob_at(model, key)

        def loss(example: Example) -> jax.Array:
            each = jax.vmap(log_prob_at, in_axes=(None, 0))(example, jnp.eye(len(share)))
            return jax.nn.logsumexp(each, b=share) - log_prob_at(example, example.reward)

        return (self.losses(model, batch, key) + jax.vmap(loss)(batch))[:, None]

    least_steps: ClassVar[int] = 0
    """Smallest number of steps from new parameters, whatever the held-out loss."""

    def informed(self, model: Model, share: NDArray[np.float32]) -> Model:
        """Return a new model whose initial outputs reflect how often each reward occurs."""
        return model


@dataclass(frozen=True)
class SoftmaxDesign(Design[Network]):
    """π(a | c, r) = Π_s softmax(h_s(c, r)), trained by maximum likelihood."""

    sizes: tuple[int, ...]
    context_width: int
    reward_width: int
    hidden: int
    injection: str
    reals: int = 0

    def drawn(self, rng: np.random.Generator) -> Network:
        shape = (self.hidden, self.reward_width, self.injection)
        return Network.drawn(self.context_width, sum(self.sizes), *shape, rng)

    def losses(self, model: Network, batch: Example, key: jax.Array) -> jax.Array:
        log_prob_at = self.log_prob_at(model, key)
        return jax.vmap(lambda example: -log_prob_at(example, example.reward))(batch)

    def log_prob_at(
        self, model: Network, key: jax.Array
    ) -> Callable[[Example, jax.Array], jax.Array]:
        def at(example: Example, reward: jax.Array) -> jax.Array:
            logits = model(example.context, reward)
            return log_prob(logits, one_hot(example.action, self.sizes), self.sizes)

        return at


LEAST_STEPS = 300
"""Smallest number of training steps from new parameters, tuned for weak signals. Earlier a latent
variable carries no information yet. The held-out loss of values says little about their order,
which is often right long before the values are, and policies need the order only."""
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
        # Without the bound, σ² would overflow for a context a hundred deviations from the mean, and
        # make the loss of the whole minibatch infinite.
        log_deviation, linear = self.log_deviation(hidden), LARGEST_LINEAR_LOG_DEVIATION
        excess = jnp.maximum(log_deviation - linear, 0.0)
        return self.mean(hidden), jnp.minimum(log_deviation, linear) + jnp.log1p(excess)


class CVAEModel(eqx.Module):
    """Both networks of the autoencoder; the decoder of p(a | c, r, z) has the inputs (z ⊕ c)."""

    encoder: Encoder
    decoder: Network

    def decoded(self, latent: jax.Array, context: jax.Array, reward: jax.Array) -> jax.Array:
        """Return the logits of all choices, then the parameters of a mixture density: ``[O]``."""
        return self.decoder(jnp.concatenate([latent, context]), reward)

    def exported(self, levels: NDArray[np.float32], latent: ArrayLike) -> SlotNetwork:
        return self.decoder.exported(levels, latent)


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
            Network.drawn(
                self.latent + width, outputs(choices, self.reals, self.components), *shape, rng
            ),
        )

    least_steps = LEAST_STEPS

    def losses(self, model: CVAEModel, batch: Example, key: jax.Array) -> jax.Array:
        """Return minus the evidence bound, with one draw of z for each example."""
        noise = jax.random.normal(key, (*batch.reward.shape[:-1], self.latent))
        return jax.vmap(self._loss, in_axes=(None, 0, 0))(model, batch, noise)

    def log_prob_at(
        self, model: CVAEModel, key: jax.Array
    ) -> Callable[[Example, jax.Array], jax.Array]:
        """Return log (1/Z) Σ_z p(a | c, r, z), with the same draws z for every reward."""
        latent = jax.random.normal(key, (HELD_OUT_DRAWS, self.latent))

        def at(example: Example, reward: jax.Array) -> jax.Array:
            def given(one: jax.Array) -> jax.Array:
                return self._log_prob(model.decoded(one, example.context, reward), example.action)

            return jax.nn.logsumexp(jax.vmap(given)(latent)) - jnp.log(HELD_OUT_DRAWS)

        return at

    def _loss(self, model: CVAEModel, example: Example, noise: jax.Array) -> jax.Array:
        action = features(example.action, self.sizes)
        mean, log_deviation = model.encoder(action, example.context, example.reward)
        deviation = jnp.exp(log_deviation)
        latent = mean + deviation * noise
        output = model.decoded(latent, example.context, example.reward)
        divergence = jnp.sum((mean**2 + deviation**2 - 1) / 2 - log_deviation)
        return self.kl_weight * divergence - self._log_prob(output, example.action)

    def _log_prob(self, output: jax.Array, action: jax.Array) -> jax.Array:
        chosen = log_prob(output, one_hot(action, self.sizes), self.sizes)
        if not self.reals:
            return chosen
        numbers = action[len(self.sizes) :]
        return chosen + log_density(output[sum(self.sizes) :], numbers, self.components)
