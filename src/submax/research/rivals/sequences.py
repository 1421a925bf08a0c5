"""Conditioned probabilities by a network that chooses one slot after the other."""

import math
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


class ChoiceWalk:
    """Follows ``count`` actions of every row through the slots of a network.

    ``given [R, L, n, H]`` is what the contexts add to the first layer. As long as the earlier
    choices have at most ``count`` combinations, each combination is evaluated once for all actions
    of a row; from then on every action is evaluated alone. Many actions of a row begin alike, so
    that this takes a fraction of the evaluations.
    """

    def __init__(
        self, network: AutoregressiveNetwork, given: Floats, sizes: tuple[int, ...], count: int
    ) -> None:
        self._network = network
        self._sizes = sizes
        self._slot = 0
        # The combinations that are evaluated, [R, L, n, P, H], and which of them an action has.
        self._reached = given[:, :, :, None]
        self._combination = np.zeros((len(given), given.shape[2], count), dtype=np.int64)

    def chances(self) -> Floats:
        """Return the probabilities of the slot's choices for each combination: ``[R, L, n, P, K]``.

        `of_actions` selects those of each action.
        """
        *shape, combinations, hidden = self._reached.shape
        flat = self._reached.reshape(*shape[:2], shape[2] * combinations, hidden)
        found = self._network.slot_probabilities(flat, self._slot, self._sizes)
        return found.reshape(*shape, combinations, self._sizes[self._slot])

    def of_actions(self, found: Floats) -> Floats:
        """Select the row of each action: ``[R, L, n, P, K] -> [R, L, n, count, K]``."""
        return _rows(found, self._combination[:, None])

    def of_choices(self, found: Floats, choice: Integers) -> Floats:
        """Select what belongs to each action's choice: ``[R, L, n, P, K] -> [R, L, n, count]``."""
        *shape, combinations, size = found.shape
        place = (self._combination * size + choice)[:, None]
        return np.take_along_axis(found.reshape(*shape, combinations * size), place, axis=3)

    def take(self, choice: Integers) -> None:
        """Go on to the next slot with the choices ``[R, n, count]`` of this one."""
        weights, size = self._network.of_slot(self._slot, self._sizes), self._sizes[self._slot]
        *shape, combinations, hidden = self._reached.shape
        count = choice.shape[2]
        self._slot += 1
        if combinations * size <= count:
            expanded = self._reached[..., None, :] + weights[:, :, None, None]
            self._reached = expanded.reshape(*shape, combinations * size, hidden)
            self._combination = self._combination * size + choice
            return
        alone = _rows(self._reached, self._combination[:, None])
        alone += _rows(weights, choice.reshape(len(choice), 1, -1)).reshape(alone.shape)
        self._reached = alone
        self._combination = np.broadcast_to(np.arange(count), choice.shape)


def _rows(table: NDArray[Any], row: Integers) -> NDArray[Any]:
    """Take whole rows of the last axis but one: ``[..., P, K]`` and ``[..., m] -> [..., m, K]``.

    ``row`` is broadcast. This is several times faster than ``np.take_along_axis``, which looks up
    every number by an index of its own.
    """
    *shape, length, width = table.shape
    first: Integers = length * np.arange(math.prod(shape)).reshape(*shape, 1)
    return np.ascontiguousarray(table).reshape(-1, width).take(first + row, axis=0)


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
        replicas, levels, rows, hidden = self.given.shape
        action = np.broadcast_to(action, (replicas, rows, *action.shape[2:]))
        step = max(1, ACTIVATIONS_AT_ONCE // max(1, replicas * levels * hidden))
        parts = [
            self._prob(action[:, :, begin : begin + step])
            for begin in range(0, action.shape[2] or 1, step)
        ]
        return np.concatenate(parts, axis=-1)

    def _prob(self, action: Integers) -> Floats:
        """Return the probability of some actions: ``[R, n, m, S] -> [R, n, L, m]``."""
        count = action.shape[2]
        parts = [self._part(rows)._prob_of_part(action[:, rows]) for rows in self._row_parts(count)]
        return np.concatenate(parts, axis=1)

    def _prob_of_part(self, action: Integers) -> Floats:
        replicas, levels, rows, _ = self.given.shape
        walk = ChoiceWalk(self.network, self.given, self.sizes, action.shape[2])
        found = np.ones((replicas, levels, rows, action.shape[2]))
        for slot in range(len(self.sizes)):
            found *= walk.of_choices(walk.chances(), action[..., slot])
            if slot + 1 < len(self.sizes):
                walk.take(action[..., slot])
        return found.swapaxes(1, 2)

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
        one = DecodedSequence(
            self.network.at_level(level), self.given[:, level : level + 1], self.sizes
        )
        uniform = rng.random((len(self.sizes), replicas, rows, count))
        parts = [one._part(part)._drawn(uniform[:, :, part]) for part in one._row_parts(count)]
        return np.concatenate(parts, axis=1)

    def _drawn(self, uniform: Floats) -> Integers:
        """Draw an action for uniform numbers of each slot: ``[S, R, n, m] -> [R, n, m, S]``."""
        walk, chosen = ChoiceWalk(self.network, self.given, self.sizes, uniform.shape[-1]), []
        for slot, size in enumerate(self.sizes):
            rising = walk.of_actions(walk.chances().cumsum(axis=-1))[:, 0]
            wanted = uniform[slot] * rising[..., -1]
            chosen.append((rising[..., : size - 1] <= wanted[..., None]).sum(axis=-1))
            if slot + 1 < len(self.sizes):
                walk.take(chosen[-1])
        return np.stack(chosen, axis=-1)

    def _row_parts(self, count: int) -> list[slice]:
        """Split the rows so that the activations of ``count`` actions of each fit into memory."""
        replicas, levels, rows, hidden = self.given.shape
        evaluated = min(count, math.prod(self.sizes[:-1]))
        step = max(1, ACTIVATIONS_AT_ONCE // max(1, replicas * levels * evaluated * hidden))
        return [slice(begin, begin + step) for begin in range(0, rows or 1, step)]

    def _part(self, rows: slice) -> "DecodedSequence":
        return DecodedSequence(self.network, self.given[:, :, rows], self.sizes)

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
        network = self._params.network
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
        return SequenceBelief(params, context, 0, lambda: self.importance_values(params))
