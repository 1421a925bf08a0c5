"""Designs of networks beyond the paper, in JAX."""

import functools
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.models.networks.choices import SlotNetwork
from submax.models.networks.densities import outputs
from submax.models.nn.designs import (
    LEAST_STEPS,
    CVAEDesign,
    CVAEModel,
    Design,
    Example,
    LikelihoodDesign,
    contiguous,
    features,
    log_density,
    log_prob,
    one_hot,
    slot_network,
)
from submax.models.nn.reward_injection import Dense, Network
from submax.research.rivals.estimators import AutoregressiveNetwork, DenoisingNetwork, signal_shares
from submax.research.rivals.value_networks import ValueNetwork


class PolicyNetworkDesign(Design[Network]):
    """The network of a policy: its inputs are a latent variable, if any, and the context."""

    hidden: int

    def output(self, model: Network, latent: jax.Array, context: jax.Array) -> jax.Array:
        """Return the outputs ``[O]`` for a latent ``[J]`` and a context ``[D]``."""
        return model(jnp.concatenate([latent, context]), jnp.zeros(0))

    def drawn_with(self, latent: int, outputs: int, rng: np.random.Generator) -> Network:
        """Return a network with a latent variable of this width, and so many outputs."""
        return Network.drawn(latent + self.context_width, outputs, self.hidden, 0, "plain", rng)

    def informed(self, model: Network, share: NDArray[np.float32]) -> Network:
        """Return the model with a head of zeros, so training begins at a uniform policy."""
        head = Dense(np.zeros_like(model.head.weight), np.zeros_like(model.head.bias))
        return Network(model.trunk, head)

    def exported(
        self, model: Network, levels: NDArray[np.float32], latent: ArrayLike
    ) -> SlotNetwork:
        """Return the network in numpy; ``levels [R, 1, 0]`` are empty, ``latent [R, 1, Z, J]``."""
        return slot_network(model, levels, latent)


@dataclass(frozen=True)
class PolicyDesign(PolicyNetworkDesign):
    """The network of a policy π(a | c) = (1/Z) Σ_z p(a | c, z), with z ~ N(0, 1).

    Without a latent variable (``latent`` 0 and ``draws`` 1) π is p, a softmax in each slot. Z is
    ``draws``, and real-valued parts of an action have a mixture density of ``components``.

    The loss of a row with action a and context c is, with w = min(π(a | c) / q, W) held constant,

        −A w log π(a | c) − Σ_b π(b | c) G(b) − λ log π(u | c).

    A and log q, the first two numbers of the encoded reward, are the advantage and the logged
    log-probability of a; W is ``largest_weight``. G are the other numbers: either none, or a value
    for each joint action b. The gradient of the first two terms is that of the estimated expected
    reward. λ is ``regularization``, and u is a uniform action, so the last term is λ times the
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

    def drawn(self, rng: np.random.Generator) -> Network:
        width = outputs(sum(self.sizes), self.reals, self.components)
        return self.drawn_with(self.latent, width, rng)

    def losses(self, model: Network, batch: Example, key: jax.Array) -> jax.Array:
        """Return the loss of each row, with draws of z and u of its own."""
        keys = jax.random.split(key, 2)
        rows = batch.reward.shape[0]
        latent = jax.random.normal(keys[0], (rows, self.draws, self.latent))
        uniform = jax.random.uniform(keys[1], (rows, len(self.sizes) + self.reals))

        def loss(example: Example, latent: jax.Array, uniform: jax.Array) -> jax.Array:
            output = self._output_of_draws(model, latent, example)
            spread = self.log_prob(output, self._uniform_action(uniform))
            return self.surrogate(output, example) - self.regularization * spread

        return jax.vmap(loss)(batch, latent, uniform)

    def held_out_losses(
        self, model: Network, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        """Return minus the estimated reward of the policy, A w + Σ_b π(b) G(b), and no λ."""
        latent = jax.random.normal(key, (self.draws, self.latent))

        def loss(example: Example) -> jax.Array:
            output = self._output_of_draws(model, latent, example)
            weight = self._weight(self.log_prob(output, example.action), example)
            return -example.reward[0] * weight - self._listed_value(output, example)

        return jax.vmap(loss)(batch)[:, None]

    def surrogate(self, output: jax.Array, example: Example) -> jax.Array:
        """Return the loss without λ, of outputs ``[Z, O]`` for one row: a scalar."""
        log_prob = self.log_prob(output, example.action)
        weight = jax.lax.stop_gradient(self._weight(log_prob, example))
        return -example.reward[0] * weight * log_prob - self._listed_value(output, example)

    def _output_of_draws(self, model: Network, latent: jax.Array, example: Example) -> jax.Array:
        """Return the outputs for each latent draw in the context of a row: ``[Z, J] -> [Z, O]``."""
        return jax.vmap(lambda one: self.output(model, one, example.context))(latent)

    def log_prob(self, output: jax.Array, action: jax.Array) -> jax.Array:
        """Return log π of an action ``[S]``, averaged over the draws of z: ``[Z, O] -> []``."""

        def given(one: jax.Array) -> jax.Array:
            chosen = log_prob(one, one_hot(action, self.sizes), self.sizes)
            if not self.reals:
                return chosen
            numbers = action[len(self.sizes) :]
            return chosen + log_density(one[sum(self.sizes) :], numbers, self.components)

        return jax.nn.logsumexp(jax.vmap(given)(output)) - jnp.log(self.draws)

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


@dataclass(frozen=True)
class PreferenceDesign(PolicyNetworkDesign):
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

    def drawn(self, rng: np.random.Generator) -> Network:
        return self.drawn_with(0, sum(self.sizes), rng)

    def losses(self, model: Network, batch: Example, key: jax.Array) -> jax.Array:
        """Return the loss of each pair."""

        def loss(example: Example) -> jax.Array:
            context, action, _ = jnp.split(
                example.reward, [self.context_width, self.context_width + len(self.sizes)]
            )
            none = jnp.zeros(0)
            first, second = (self.output(model, none, one) for one in (example.context, context))
            return self.pair_loss(first, second, example, action)

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
        self, model: Network, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        return self.losses(model, batch, key)[:, None]


@dataclass(frozen=True)
class SlateCVAEDesign(CVAEDesign):
    """The design of a CVAE whose encoded reward joins the encoded responses of all slots.

    Reference: Jiang et al. (2019).
    """

    def held_out_losses(
        self, model: CVAEModel, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        """Return minus the evidence bound: responses of several slots cannot be listed."""
        return self.losses(model, batch, key)[:, None]


FIRST_DEVIATION = 0.05
"""Standard deviation of the parameters when training begins: small beside Glorot's weights, so
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
        return losses + share * divergence(model)

    def held_out_losses(
        self, model: VariationalModel, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        return self.network.held_out_losses(model.mean, batch, share, key)

    def exported(
        self, model: VariationalModel, levels: NDArray[np.float32], latent: ArrayLike
    ) -> SlotNetwork:
        """Return the network with the mean of the posterior as its parameters, in numpy."""
        network: Any = self.network
        return network.exported(model.mean, levels, latent)


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


UNCONDITIONED = 0.2
"""Share of rows whose reward is hidden in training, so the network also learns to predict an
action without a reward; between the 0.1 and 0.25 that are common."""


@dataclass(frozen=True)
class DenoisingDesign(Design[Network]):
    """The network x̂ that minimizes E ‖x̂(x_t, t, c, r) − x‖², x_t = √ᾱ_t x + √(1 − ᾱ_t) ε.

    x are the numbers of an action between −1 and 1, the one-hot choices among them. t is uniform
    from 1 to T = ``steps``, and ε is standard normal. In a share of the rows r is hidden, encoded
    as zeros.

    Reference: Ho et al. (2020); Ho and Salimans (2022) for hidden conditions.
    """

    sizes: tuple[int, ...]
    reals: int
    context_width: int
    reward_width: int
    hidden: int
    steps: int
    injection: str

    @property
    def action_width(self) -> int:
        """Number of numbers that describe an action (W)."""
        return sum(self.sizes) + self.reals

    def drawn(self, rng: np.random.Generator) -> Network:
        inputs = self.action_width + self.steps + self.context_width
        shape = (self.hidden, self.reward_width, self.injection)
        return Network.drawn(inputs, self.action_width, *shape, rng)

    def losses(self, model: Network, batch: Example, key: jax.Array) -> jax.Array:
        """Return the squared error of each row, for a step and a noise of its own."""
        keys = jax.random.split(key, 3)
        rows = batch.reward.shape[0]
        step = jax.random.randint(keys[0], (rows,), 1, self.steps + 1)
        noise = jax.random.normal(keys[1], (rows, self.action_width))
        conditioned = jax.random.bernoulli(keys[2], 1 - UNCONDITIONED, (rows, 1))
        masked = batch._replace(reward=batch.reward * conditioned)
        return jax.vmap(self.loss, in_axes=(None, 0, 0, 0))(model, masked, step, noise)

    def loss(
        self, model: Network, example: Example, step: jax.Array, noise: jax.Array
    ) -> jax.Array:
        """Return the squared error of one row at a given step and noise: a scalar."""
        clean = self.numbers(example.action)
        share = jnp.asarray(signal_shares(self.steps), dtype=clean.dtype)[step]
        noisy = jnp.sqrt(share) * clean + jnp.sqrt(1 - share) * noise
        inputs = jnp.concatenate([noisy, jnp.eye(self.steps)[step - 1], example.context])
        return jnp.sum((model(inputs, example.reward) - clean) ** 2)

    def numbers(self, action: jax.Array) -> jax.Array:
        """Return an action as numbers between −1 and 1: ``[S] -> [W]``."""
        found = features(action, self.sizes)
        choices = sum(self.sizes)
        return jnp.concatenate([2 * found[:choices] - 1, found[choices:]])

    def held_out_losses(
        self, model: Network, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        return self.losses(model, batch, key)[:, None]

    def exported(
        self, model: Network, levels: NDArray[np.float32], latent: ArrayLike
    ) -> DenoisingNetwork:
        """Return the network in numpy at levels ``[R, L, E]``; ``latent [R, 1, K, W]`` is noise."""
        none = np.zeros((len(levels), 1, levels.shape[2]), dtype=np.float32)
        conditions = np.concatenate([levels, none], axis=1)
        ends = np.cumsum([self.action_width, self.steps])
        noise, step, context, bias, *rest = model.folded(conditions, ends)
        return DenoisingNetwork(*contiguous([noise, step + bias, context, *rest, latent]))


@dataclass(frozen=True)
class AutoregressiveDesign(LikelihoodDesign):
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

    def drawn(self, rng: np.random.Generator) -> Network:
        inputs = sum(self.sizes) + len(self.sizes) + self.context_width
        shape = (self.hidden, self.reward_width, self.injection)
        return Network.drawn(inputs, sum(self.sizes), *shape, rng)

    def log_prob(self, model: Network, example: Example, reward: jax.Array) -> jax.Array:
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
        self, model: Network, levels: NDArray[np.float32], latent: ArrayLike
    ) -> AutoregressiveNetwork:
        """Return the network in numpy at levels ``[R, L, E]``; ``latent`` has width 0."""
        ends = np.cumsum([sum(self.sizes), len(self.sizes)])
        choices, slots, context, bias, *rest = model.folded(levels, ends)
        return AutoregressiveNetwork(*contiguous([choices, slots + bias, context, *rest]))


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
        return jax.vmap(self._loss, in_axes=(None, 0, 0))(model, batch, masks)

    def held_out_losses(
        self, model: ValueModel, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        """Return the cross-entropy without dropout, by factor of ``CONFIDENCE``: ``[B, 4]``."""
        masks = jnp.ones((2, self.hidden))
        mean_logit = jnp.log(share[0]) - jnp.log1p(-share[0])
        factors = jnp.asarray(CONFIDENCE)

        def loss(example: Example) -> jax.Array:
            x = jnp.concatenate([one_hot(example.action, self.sizes), example.context])
            logit = mean_logit + factors * (model(x, masks) - mean_logit)
            return jax.nn.softplus(logit) - example.reward[0] * logit

        return jax.vmap(loss)(batch)

    def informed(self, model: ValueModel, share: NDArray[np.float32]) -> ValueModel:
        """Return the model with a head by which every action has the mean reward as its value.

        With a random head some actions would have higher values before any training.
        """
        head = model.head
        bias = np.log(share) - np.log1p(-share)
        return ValueModel(model.first, model.second, Dense(np.zeros_like(head.weight), bias))

    def _loss(self, model: ValueModel, example: Example, masks: jax.Array) -> jax.Array:
        x = jnp.concatenate([one_hot(example.action, self.sizes), example.context])
        logit = model(x, masks)
        return jax.nn.softplus(logit) - example.reward[0] * logit

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
