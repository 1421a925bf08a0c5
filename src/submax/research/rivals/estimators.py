"""Estimators of the related work: denoising, slot after slot, and a posterior as the next prior."""

import functools
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import Allowed, Count, NonNegative, Positive, one_of
from submax.core.conditioning import ConditionalDistribution, sums_by_slot
from submax.core.errors import InputError
from submax.core.problem import Feedback, Problem
from submax.core.rewards import RewardEncoding
from submax.core.serialization import serializable
from submax.core.spaces import RealSpace
from submax.estimators.network import NetworkBelief, NetworkEstimator, NetworkParams, Softmax
from submax.models.memory import Buffer, Memory
from submax.models.networks.choices import (
    INJECTION_FORMS,
    DecodedChoices,
    Parameters,
    choice_probabilities,
    first_choices,
    where_chosen,
)
from submax.models.networks.densities import DecodedDensity, MixtureDensity
from submax.models.training_settings import ContextScaling, Minibatches, Training

if TYPE_CHECKING:
    from submax.models.nn.training import Trained
    from submax.research.rivals.designs import (
        AutoregressiveDesign,
        DenoisingDesign,
        VariationalDesign,
    )


Weights = NDArray[np.float32]
LAST_ANGLE = 0.98
"""Share of π/2 at the highest noise level: there an action is nearly all noise, but not quite, so
that no division is by zero."""


@functools.cache
def signal_shares(steps: int) -> Floats:
    """Return ᾱ_0 = 1 … ᾱ_T, the share of the signal in the variance: cos²(0.98 π t / (2 T)).

    Reference: Nichol and Dhariwal (2021).
    """
    return np.cos(LAST_ANGLE * np.pi / 2 * np.arange(steps + 1) / steps) ** 2


@serializable("denoising-network")
class DenoisingNetwork(NamedTuple):
    """The prediction of an action without noise, from one with noise, at L levels and without one.

    The last of the L + 1 conditions is the one without a reward. With W numbers of an action, T
    steps, D context numbers, H hidden units and K paths, shapes are ``noise_weight [R, L + 1, W,
    H]``, ``step_bias [R, L + 1, T, H]``, ``context_weight [R, L + 1, D, H]``, ``second_weight
    [R, L + 1, H, H]``, ``second_bias [R, L + 1, 1, H]``, ``head_weight [R, 1, H, W]``, ``head_bias
    [R, 1, 1, W]``, and ``starts [R, 1, K, W]``, the noise at which the K paths begin.
    """

    noise_weight: Weights
    step_bias: Weights
    context_weight: Weights
    second_weight: Weights
    second_bias: Weights
    head_weight: Weights
    head_bias: Weights
    starts: Weights

    @classmethod
    def silent(
        cls,
        replicas: int,
        levels: int,
        steps: int,
        paths: int,
        width: int,
        action: int,
        hidden: int,
    ) -> Self:
        """Return an untrained network, which predicts 0 for every number of an action."""
        shapes = (
            (replicas, levels + 1, action, hidden),
            (replicas, levels + 1, steps, hidden),
            (replicas, levels + 1, width, hidden),
            (replicas, levels + 1, hidden, hidden),
            (replicas, levels + 1, 1, hidden),
            (replicas, 1, hidden, action),
            (replicas, 1, 1, action),
            (replicas, 1, paths, action),
        )
        return cls(*(np.zeros(shape, dtype=np.float32) for shape in shapes))

    def where(self, chosen: Booleans, other: Self) -> Self:
        """Return this network in the replicas ``chosen [R]``, and the other one elsewhere."""
        return type(self)(*where_chosen(chosen, self, other))

    def denoised(self, context: Floats, guidance: float) -> Weights:
        """Return the ends of all paths at each level: ``[R, n, D] -> [R, L, n, K, W]``.

        A path begins at noise x_T. In step t the network predicts the action x̂ without noise, and
        x_{t−1} = √ᾱ_{t−1} x̂ + √(1 − ᾱ_{t−1}) (x_t − √ᾱ_t x̂) / √(1 − ᾱ_t). With ``guidance`` ω,
        x̂ is x̂_none + ω (x̂_level − x̂_none). The result is the last x̂.

        Reference: Song et al. (2021) for the deterministic steps; Ho and Salimans (2022) for ω.
        """
        conditions, steps = self.step_bias.shape[1:3]
        replicas, rows = context.shape[:2]
        paths, width = self.starts.shape[2:]
        given = context.astype(np.float32)[:, None] @ self.context_weight
        shape = (replicas, conditions - 1, rows, paths, width)
        x: Weights = np.broadcast_to(self.starts[:, :, None], shape)
        shares = np.sqrt(signal_shares(steps)).astype(np.float32)
        noises = np.sqrt(1 - signal_shares(steps)).astype(np.float32)
        clean = x
        for step in range(steps, 0, -1):
            level = self._predicted(x, step, given, slice(0, -1))
            none = self._predicted(x, step, given, slice(-1, None))
            clean = none + np.float32(guidance) * (level - none)
            noise = (x - shares[step] * clean) / noises[step]
            x = shares[step - 1] * clean + noises[step - 1] * noise
        return clean

    def _predicted(self, x: Weights, step: int, given: Weights, part: slice) -> Weights:
        """Return x̂ of ``x [R, L, n, K, W]`` under some of the conditions, one or L of them."""
        replicas, levels, rows, paths, width = x.shape
        units = self.noise_weight.shape[-1]
        flat = x.reshape(replicas, levels, rows * paths, width)
        first = flat @ self.noise_weight[:, part]
        first = first.reshape(replicas, levels, rows, paths, units) + given[:, part, :, None]
        first += self.step_bias[:, part, None, None, step - 1]
        hidden = np.maximum(first, 0).reshape(replicas, levels, rows * paths, units)
        hidden = np.maximum(hidden @ self.second_weight[:, part] + self.second_bias[:, part], 0)
        predicted: Weights = hidden @ self.head_weight + self.head_bias
        return predicted.reshape(x.shape)


class DenoisedBelief(NetworkBelief):
    """The mixture over the K paths of a denoising network, whose ends are blurred.

    If a path ends at y, with numbers between 0 and 1, then a slot has the probabilities
    softmax(y / τ), and a real-valued part has a logistic density at y with the scale τ, truncated
    to the range from 0 to 1; τ is ``spread``. The ``guidance`` is that of
    `DenoisingNetwork.denoised`.
    """

    @cached_property
    def _decoded(self) -> ConditionalDistribution:
        space = self.space
        if not isinstance(space, RealSpace):
            return DecodedChoices(self._choice_probabilities, space.choices)
        ends = self._ends.astype(np.float64)
        choices, numbers = np.split(ends, [sum(space.choices)], axis=-1)
        mixture = MixtureDensity(
            choice_probabilities(self._outputs(), space.choices) if space.choices else choices,
            np.ones((*ends.shape[:-1], 1)),
            numbers[..., None, :],
            np.full((*ends.shape[:-1], 1, space.reals), self.estimator.spread),
        )
        return DecodedDensity(mixture, space)

    def _outputs(self) -> NDArray[np.float32]:
        """Return the logits of all choices, ``[R, L, n, K, C]``."""
        choices: NDArray[np.float32] = self._ends[..., : sum(self.space.choices)]
        return choices / np.float32(self.estimator.spread)

    @cached_property
    def _ends(self) -> NDArray[np.float32]:
        """The ends of all paths, on the scale from 0 to 1: ``[R, L, n, K, W]``."""
        network = self.params.network
        assert isinstance(network, DenoisingNetwork)
        ends = (network.denoised(self._scaled_context, self.estimator.guidance) + 1) / 2
        # A prediction far outside of the range would overflow nothing, but means the same.
        return np.clip(ends, -1.0, 2.0)


@dataclass(frozen=True)
class Denoising(NetworkEstimator):
    """π(a | c, r) is a mixture of the ends of K paths from noise to actions, guided by r.

    A network learns to predict actions from actions with noise. Each of K = ``draws`` paths begins
    at noise that is drawn at every update and kept, and takes ``noise_steps`` steps, in which the
    prediction is x̂_none + ω (x̂_r − x̂_none), with x̂_none the prediction without a reward and ω the
    ``guidance``: above 1 the reward has more influence than in the data. The end of a path is
    blurred by τ = ``spread``, as a share of the range of a number, so every action has a
    known probability or density (`DenoisedBelief`). It is made for real-valued actions; choices are
    treated as numbers of which the largest is chosen.

    Reference: Ajay et al. (2023), with guidance by the return; Ho and Salimans (2022).

    *Departs from the paper:* it is the action that is denoised, since there is one decision and no
    trajectory of states. Steps are deterministic and few, and paths are kept between updates, so
    that decisions and their probabilities agree. The network predicts the action and not the noise.
    A strategy weighs the reward levels; the paper asks for the highest one, as `Optimistic` does.
    """

    hidden: Count = 32
    noise_steps: Count = 8
    draws: Count = 16
    guidance: NonNegative = 1.5
    spread: Positive = 0.05
    injection: Annotated[str, Allowed(one_of, INJECTION_FORMS)] = "modulation"
    training: Training = field(default_factory=Training)
    memory: Memory = field(default_factory=Memory)

    components = 1

    @property
    def largest_deviation(self) -> float:
        """Return 1, the deviation of the noise: smaller features would be drowned."""
        return 1.0

    def design(self, problem: Problem) -> "DenoisingDesign":
        from submax.research.rivals.designs import DenoisingDesign

        return DenoisingDesign(
            problem.space.choices,
            problem.space.reals,
            problem.context_width,
            problem.scale.width,
            self.hidden,
            self.noise_steps,
            self.injection,
        )

    def drawn(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Floats:
        """Return the noise at which the paths begin, the same for every level."""
        width = sum(problem.space.choices) + problem.space.reals
        return rng.normal(size=(replicas, 1, self.draws, width))

    def silent_network(self, problem: Problem, replicas: int, levels: int) -> DenoisingNetwork:
        width = sum(problem.space.choices) + problem.space.reals
        shape = (self.noise_steps, self.draws, problem.context_width, width, self.hidden)
        return DenoisingNetwork.silent(replicas, levels, *shape)

    def belief(self, params: NetworkParams, context: Floats) -> DenoisedBelief:
        return DenoisedBelief(self, params, context)


@serializable("autoregressive-network")
class AutoregressiveNetwork(NamedTuple):
    """Logits of every choice of a slot, given the choices of the slots before, at L reward levels.

    With S slots, C choices in all of them together, D context numbers and H hidden units, shapes
    are ``choice_weight [R, L, C, H]``, ``slot_bias [R, L, S, H]``, ``context_weight [R, L, D, H]``,
    ``second_weight [R, L, H, H]``, ``second_bias [R, L, 1, H]``, ``head_weight [R, 1, H, C]``,
    ``head_bias [R, 1, 1, C]``.
    """

    choice_weight: Weights
    slot_bias: Weights
    context_weight: Weights
    second_weight: Weights
    second_bias: Weights
    head_weight: Weights
    head_bias: Weights

    @classmethod
    def silent(
        cls, replicas: int, levels: int, sizes: tuple[int, ...], width: int, hidden: int
    ) -> Self:
        """Return an untrained network, in which every choice has logit 0."""
        choices = sum(sizes)
        shapes = (
            (replicas, levels, choices, hidden),
            (replicas, levels, len(sizes), hidden),
            (replicas, levels, width, hidden),
            (replicas, levels, hidden, hidden),
            (replicas, levels, 1, hidden),
            (replicas, 1, hidden, choices),
            (replicas, 1, 1, choices),
        )
        return cls(*(np.zeros(shape, dtype=np.float32) for shape in shapes))

    def where(self, chosen: Booleans, other: Self) -> Self:
        """Return this network in the replicas ``chosen [R]``, and the other one elsewhere."""
        return type(self)(*where_chosen(chosen, self, other))

    def given(self, context: Floats) -> Floats:
        """Return what the context adds to the first layer: ``[R, n, D] -> [R, L, n, H]``.

        The result, and all that follows from it, is float64: a product of matrices rounds
        differently for different numbers of rows, and in float32 the difference would be seen.
        """
        return context[:, None] @ self.context_weight

    def slot_probabilities(self, reached: Floats, slot: int, sizes: tuple[int, ...]) -> Floats:
        """Return the probabilities of a slot's choices: ``[R, L, m, H] -> [R, L, m, K]``.

        ``reached`` is what the context and the choices of earlier slots add to the first layer, for
        m combinations of them. All levels of a replica are evaluated if ``reached`` has L of them.
        """
        begin = int(first_choices(sizes)[slot])
        end = begin + sizes[slot]
        # In place where possible, because most of the time goes into reading and writing arrays.
        hidden = reached + self.slot_bias[:, :, slot : slot + 1]
        np.maximum(hidden, 0, out=hidden)
        hidden = hidden @ self.second_weight
        hidden += self.second_bias
        np.maximum(hidden, 0, out=hidden)
        mass: Floats = hidden @ self.head_weight[..., begin:end]
        mass += self.head_bias[..., begin:end]
        mass -= np.maximum.reduce(mass, axis=-1, keepdims=True)
        np.exp(mass, out=mass)
        mass /= np.add.reduce(mass, axis=-1, keepdims=True)
        return mass

    def of_slot(self, slot: int, sizes: tuple[int, ...]) -> Weights:
        """Return what each choice of a slot adds to the first layer: ``[R, L, K, H]``."""
        begin = int(first_choices(sizes)[slot])
        return self.choice_weight[:, :, begin : begin + sizes[slot]]

    def at_level(self, level: int) -> Self:
        """Return the network at one level, which keeps its axis."""
        one = slice(level, level + 1)
        return self._replace(
            choice_weight=self.choice_weight[:, one],
            slot_bias=self.slot_bias[:, one],
            context_weight=self.context_weight[:, one],
            second_weight=self.second_weight[:, one],
            second_bias=self.second_bias[:, one],
        )


ACTIVATIONS_AT_ONCE = 2**18
"""About how many activations are held in memory, 2 MB of float64, which stay in the cache of a
processor; more actions are processed in parts."""


@dataclass(frozen=True)
class DecodedSequence(ConditionalDistribution):
    """π(a | c, l) = Π_s p(a_s | a_1 … a_{s−1}, c, l) in slots of these ``sizes``.

    ``given [R, L, n, H]`` is what the contexts add to the first layer of the ``network``.
    """

    network: AutoregressiveNetwork
    given: Floats
    sizes: tuple[int, ...]

    def prob(self, action: Integers) -> Floats:
        replicas, levels, rows, _ = self.given.shape
        count = action.shape[2]
        chosen = np.broadcast_to(action, (replicas, rows, *action.shape[2:]))
        chosen = chosen.reshape(replicas, rows * count, -1)
        found = np.empty((replicas, levels, rows * count))
        for part in self._parts(rows * count):
            found[:, :, part] = self._along(self._of_rows(part, count), chosen[:, part])
        return found.reshape(replicas, levels, rows, count).swapaxes(1, 2)

    def _along(self, reached: Floats, action: Integers) -> Floats:
        """Return the probabilities of actions: ``[R, L, m, H]``, ``[R, m, S] -> [R, L, m]``."""
        found = np.ones(reached.shape[:3])
        for slot in range(len(self.sizes)):
            choice = action[:, None, :, slot, None]
            chances = self.network.slot_probabilities(reached, slot, self.sizes)
            found *= np.take_along_axis(chances, choice, axis=3)[..., 0]
            reached += self._effect(slot, choice)
        return found

    def _effect(self, slot: int, choice: Integers) -> Floats:
        """Return what choices ``[R, 1, m, 1]`` add to the first layer: ``[R, L, m, H]``."""
        weights: Any = self.network.of_slot(slot, self.sizes)
        return np.take_along_axis(weights, choice, axis=2)

    def _of_rows(self, part: slice, count: int) -> Floats:
        """Return a copy of ``given`` for some of all actions, ``count`` of them in each row."""
        row = np.arange(self.given.shape[2] * count)[part] // count
        return self.given[:, :, row].copy()

    def _parts(self, actions: int) -> list[slice]:
        """Split all actions into parts whose activations are held in memory together."""
        replicas, levels, _, hidden = self.given.shape
        step = max(1, ACTIVATIONS_AT_ONCE // max(1, replicas * levels * hidden))
        return [slice(begin, begin + step) for begin in range(0, actions, step)]

    def prob_of_all(self) -> Floats:
        """Return the probability of every joint action, last slot fastest: ``[R, n, L, M]``.

        The choices of earlier slots are expanded like a tree, so the last slot, usually the
        widest one, adds no evaluations of the network.
        """
        replicas, levels, rows, hidden = self.given.shape
        shape, count = (replicas, levels, rows), 1
        found, reached = np.ones((*shape, 1)), self.given[:, :, :, None]
        for slot, size in enumerate(self.sizes):
            flat = reached.reshape(replicas, levels, rows * count, hidden)
            chances = self.network.slot_probabilities(flat, slot, self.sizes)
            joint = found[..., None] * chances.reshape(*shape, count, size)
            count *= size
            found = joint.reshape(*shape, count)
            if slot + 1 < len(self.sizes):
                choices = self.network.of_slot(slot, self.sizes)[:, :, None, None]
                reached = (reached[..., None, :] + choices).reshape(*shape, count, hidden)
        return found.swapaxes(1, 2)

    def sample(self, level: int, count: int, rng: np.random.Generator) -> Integers:
        replicas, _, rows, _ = self.given.shape
        one = slice(level, level + 1)
        alone = DecodedSequence(self.network.at_level(level), self.given[:, one], self.sizes)
        uniform = rng.random((len(self.sizes), replicas, rows * count))
        action = np.empty((replicas, rows * count, len(self.sizes)), dtype=np.int64)
        for part in alone._parts(rows * count):
            reached = alone._of_rows(part, count)
            for slot in range(len(self.sizes)):
                rising = alone.network.slot_probabilities(reached, slot, self.sizes)
                rising = rising.cumsum(axis=-1)[:, 0]
                wanted = uniform[slot, :, part, None] * rising[..., -1:]
                choice = (rising[..., :-1] <= wanted).sum(axis=-1)
                action[:, part, slot] = choice
                reached += alone._effect(slot, choice[:, None, :, None])
        return action.reshape(replicas, rows, count, -1)

    def rows(self, row: Integers) -> "DecodedSequence":
        given = np.take_along_axis(self.given, row[:, None, :, None], axis=2)
        return DecodedSequence(self.network, given, self.sizes)


class SequenceBelief(NetworkBelief):
    """The belief that an autoregressive network gives; slots depend on the slots before them.

    The probabilities of a slot's choices are sums over joint actions, which are listed for them.
    """

    def prob_of_all(self) -> Floats:
        return self._decoded.prob_of_all()

    def prob_of_choices(self) -> list[Floats]:
        self.space.check_listable("the belief of an autoregressive network", "take a CVAE")
        return sums_by_slot(self.prob_of_all(), self.space.choices)

    @cached_property
    def _decoded(self) -> DecodedSequence:
        network = self.params.network
        assert isinstance(network, AutoregressiveNetwork)
        return DecodedSequence(network, network.given(self._scaled_context), self.space.choices)


@dataclass(frozen=True)
class Autoregressive(NetworkEstimator):
    """π(a | c, r) = Π_s p(a_s | a_1 … a_{s−1}, c, r), with one network p for all slots s.

    Any distribution over joint actions has this form, so choices of different slots may depend
    on each other; no latent variable is needed, and all probabilities are exact. A draw evaluates
    the network once for each slot.

    Reference: Chen et al. (2021), a decision transformer for one decision: return, state, then the
    parts of the action as a sequence.

    *Departs from the paper:* the sequence is short and its length is fixed, so the network has
    two hidden layers which read all earlier choices, and no attention. The reward enters as in the
    paper's own networks (``injection``), not as a token. Decisions do not condition on one high
    return; a strategy weighs the reward levels.
    """

    hidden: Count = 32
    injection: Annotated[str, Allowed(one_of, INJECTION_FORMS)] = "modulation"
    training: Training = field(default_factory=Training)
    memory: Memory = field(default_factory=Memory)

    def design(self, problem: Problem) -> "AutoregressiveDesign":
        from submax.research.rivals.designs import AutoregressiveDesign

        return AutoregressiveDesign(
            problem.space.choices,
            problem.context_width,
            problem.scale.width,
            self.hidden,
            self.injection,
        )

    def silent_network(self, problem: Problem, replicas: int, levels: int) -> AutoregressiveNetwork:
        sizes, width = problem.space.choices, problem.context_width
        return AutoregressiveNetwork.silent(replicas, levels, sizes, width, self.hidden)

    def belief(self, params: NetworkParams, context: Floats) -> SequenceBelief:
        return SequenceBelief(self, params, context)


STEPS = Training(steps=300, standardized=True)
"""The default training: a number of steps, because few new rows cannot tell when to stop."""


@dataclass(frozen=True)
class VariationalContinual(NetworkEstimator):
    """Learn π(a | c, r) from new rows alone: the last posterior of the parameters is the prior.

    The parameters θ of the ``estimator``'s network have independent normal distributions. Update t
    maximizes E_q[Σ_i log p(a_i | c_i, r_i, θ)] − κ KL(q ‖ q_{t−1}) over q = q_t, with i the new
    rows and q_0 = N(0, s²); s is ``prior_deviation`` and κ is ``prior_weight``. So the cost of an
    update does not grow with the number of rows before. Decisions use the mean of q. The rows are
    stored to say how often each reward level occurs.

    Reference: Nguyen et al. (2018), equation 3.

    *Departs from the paper:* κ may differ from 1, which is the paper's value, because beside the
    thousands of parameters of a network the rows of a batch are few. There is no coreset.
    Decisions use the mean of q, not draws from it. Contexts are standardized as at the first
    update. Levels that move with the data are refused.
    """

    estimator: NetworkEstimator = field(default_factory=lambda: Softmax(training=STEPS))
    prior_deviation: Positive = 1.0
    prior_weight: Positive = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.estimator, NetworkEstimator):
            raise InputError(
                f"estimator must train a network, and {self.estimator!r:.60} does not: take "
                "Softmax(training=Training(steps=300)) or a CVAE",
                parameter="estimator",
            )
        training = self.estimator.training
        if training.stops_early or training.weight_decay:
            raise InputError(
                f"steps={training.steps!r} and weight_decay={training.weight_decay} were given, "
                "and variational continual learning needs a number of steps and no weight decay, "
                "which would change the prior: give Training(steps=300)",
                parameter="training",
            )

    @property
    def training(self) -> Training:  # type: ignore[override]  # that of the network
        """How the network is trained at each update."""
        return self.estimator.training

    @property
    def memory(self) -> Memory:  # type: ignore[override]  # that of the network
        """Which rows count for the frequencies of reward levels."""
        return self.estimator.memory

    @property
    def hidden(self) -> int:  # type: ignore[override]  # that of the network
        """The number of units of each hidden layer."""
        return self.estimator.hidden

    @property
    def draws(self) -> int:
        return self.estimator.draws

    @property
    def components(self) -> int:
        return self.estimator.components

    @property
    def largest_deviation(self) -> float:
        return self.estimator.largest_deviation

    def drawn(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Floats:
        return self.estimator.drawn(problem, replicas, rng)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> NetworkParams:
        if problem.scale.moves:
            raise InputError(
                f"the levels of {problem.scale} move with the data, and variational continual "
                "learning needs fixed ones, because earlier rows are not learned from again: take "
                "Binary() or Discrete(...), or another estimator"
            )
        return super().init(problem, replicas, rng)

    def design(self, problem: Problem) -> "VariationalDesign":
        from submax.research.rivals.designs import VariationalDesign

        return VariationalDesign(self.estimator.design(problem), self.prior_deviation)

    def scaling(self, params: NetworkParams, buffer: Buffer) -> ContextScaling | None:
        """Return the scaling of the first update, since the parameters were learned for it."""
        new = super().scaling(params, buffer)
        if new is None or params.scaling is None:
            return new
        return new.where(params.buffer.filled == 0, params.scaling)

    def trained(
        self,
        params: NetworkParams,
        buffer: Buffer,
        feedback: Feedback,
        encoding: RewardEncoding,
        scaling: ContextScaling | None,
        rng: np.random.Generator,
    ) -> "Trained":
        """Train on the new rows, with the last posterior as prior."""
        from submax.models.nn.training import train

        problem = params.problem
        new = Buffer.empty(problem, len(feedback.weight)).add(feedback, Memory(), rng)
        action, reward = problem.space.scaled(new.action), encoding.encoded(new.reward)
        rows = Minibatches.of(new, action, reward, scaling)
        start = self._prior(params, new, rng)
        return train(self.design(problem), self.training, rows, rng, start)

    def _prior(self, params: NetworkParams, new: Buffer, rng: np.random.Generator) -> Parameters:
        """Return the parameters to start from, in which the last posterior is the prior."""
        fresh = self._first(params.problem, len(new.filled), rng)
        known = (params.buffer.filled > 0) & bool(params.parameters)
        start = {}
        for name, value in fresh.items():
            place = name.removeprefix("prior_")
            last = params.parameters.get(place, value)
            start[name] = np.where(known.reshape(-1, *[1] * (value.ndim - 1)), last, value)
        share = self.prior_weight / np.maximum(new.weight.sum(axis=1), 1e-300)
        start["prior_share"] = np.where(new.filled > 0, share, 0.0).astype(np.float32)
        return start

    def _first(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Parameters:
        """Return new parameters of all replicas: a random network, and the first prior."""
        import jax

        from submax.models.nn.training import unpacked

        design = self.design(problem)
        seeds = rng.integers(2**32, size=replicas, dtype=np.uint32)
        models: list[Any] = [design.drawn(np.random.default_rng(seed)) for seed in seeds]
        vectors = [np.concatenate([np.ravel(x) for x in jax.tree.leaves(m)]) for m in models]
        return unpacked(design, np.stack(vectors))
