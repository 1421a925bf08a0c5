"""Conditioned probabilities by a network that chooses one slot after the other."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import Allowed, Count, one_of
from submax.core.conditioning import ConditionalDistribution, sums_by_slot
from submax.core.problem import Problem
from submax.core.serialization import serializable
from submax.estimators.network import NetworkBelief, NetworkEstimator, NetworkParams
from submax.models.memory import Memory
from submax.models.networks.choices import INJECTION_FORMS, first_choices, where_chosen
from submax.models.training_settings import Training

if TYPE_CHECKING:
    from submax.research.rivals.designs import AutoregressiveDesign

Weights = NDArray[np.float32]


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

        The choices of earlier slots are expanded like a tree, so that the last slot, usually the
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

    Any distribution over joint actions has this form, so that choices of different slots may depend
    on each other; no latent variable is needed, and all probabilities are exact. A draw evaluates
    the network once for each slot.

    Reference: Chen et al. (2021), a decision transformer for one decision: return, state, then the
    parts of the action as a sequence.

    *Departs from the paper:* the sequence is short and its length is fixed, so that the network has
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
