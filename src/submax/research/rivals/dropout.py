"""Value networks with dropout masks, and climbing over joint choices."""

from dataclasses import dataclass
from typing import NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import BelowOne, Count, Probability
from submax.core.errors import InputError
from submax.core.numerics import highest
from submax.core.policy import TabularPolicy
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.serialization import serializable
from submax.core.spaces import Choices, Space
from submax.models.networks.choices import first_choices, where_chosen
from submax.research.rivals.value_networks import (
    Numbers,
    ValueBelief,
    ValueNetwork,
    ValueNetworkPolicy,
    Weights,
    highest_at_random,
)

Mask: TypeAlias = NDArray[np.float32]


def dropout_masks(
    shape: tuple[int, int, int], dropout: float, rng: np.random.Generator
) -> tuple[Mask, Mask]:
    """Draw a mask for each layer: 0 for a unit that is left out, 1 / (1 − dropout) otherwise.

    ``shape`` is ``(replicas, masks, units)``.
    """
    kept = 1 - dropout
    drawn = rng.random((2, *shape)) < kept
    first, second = (drawn / kept).astype(np.float32)
    return first, second


@serializable("dropout-state")
class DropoutState(NamedTuple):
    """A value network, and P dropout masks of its first and second layer, each ``[R, P, H]``."""

    belief: ValueBelief
    first: Mask
    second: Mask

    @property
    def problem(self) -> Problem:
        """The problem that the network is trained for."""
        return self.belief.problem

    def restricted(self, choices: Choices) -> Self:
        """Return the network with these choices alone."""
        return self._replace(belief=self.belief.restricted(choices))


@dataclass(frozen=True)
class DropoutThompson(ValueNetworkPolicy[DropoutState], TabularPolicy[DropoutState]):
    """Apply a random dropout mask to a value network and take the action with the highest value.

    π(a | c) = Σ_m 1[a = argmax_b f(b, c; mask m)] / P. f is the logit of a value network with two
    layers of ``hidden`` units, trained as ``training`` says, with the probability ``dropout`` of
    leaving out a unit. P = ``masks`` masks are drawn at each update. A decision uses one of them,
    picked at random, for all its actions; this makes π the share of masks under which a has the
    highest value.

    Reference: Gal and Ghahramani (2016); Riquelme et al. (2018).
    """

    dropout: BelowOne = 0.1
    masks: Count = 100

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> DropoutState:
        belief = ValueBelief.empty(problem, replicas, self.hidden)
        return DropoutState(belief, *self._masks(replicas, rng))

    def act(self, state: DropoutState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        replicas, rows = context.shape[:2]
        picked = rng.integers(self.masks, size=(replicas, rows))[..., None]
        masks = (
            np.take_along_axis(state.first, picked, axis=1),
            np.take_along_axis(state.second, picked, axis=1),
        )
        index = highest_at_random(state.belief.logits(context, masks), rng)
        return ChosenActions(state.problem.space.action(index), None)

    def probabilities(self, state: DropoutState, context: Floats) -> Floats:
        total = np.zeros((*context.shape[:2], state.problem.space.size))
        for mask in range(self.masks):
            one = slice(mask, mask + 1)
            total += highest(
                state.belief.logits(context, (state.first[:, one], state.second[:, one]))
            )
        return total / self.masks

    def update(
        self, state: DropoutState, feedback: Feedback, rng: np.random.Generator
    ) -> DropoutState:
        belief = state.belief.trained(feedback, self.training, self.dropout, rng)
        if belief is state.belief:
            return state
        # Replicas without new rows keep their masks.
        learned = np.any(feedback.weight > 0, axis=1)
        drawn = self._masks(len(state.first), rng)
        return DropoutState(belief, *where_chosen(learned, drawn, (state.first, state.second)))

    def _masks(self, replicas: int, rng: np.random.Generator) -> tuple[Mask, Mask]:
        return dropout_masks((replicas, self.masks, self.hidden), self.dropout, rng)


Masks: TypeAlias = tuple[NDArray[np.float32], NDArray[np.float32]]

CANDIDATE_ACTIVATIONS = 2**18
"""About how many activations one step of a climb holds: 1 MB of float32, so that they stay in the
cache of one core."""


def check_choices(space: Space, policy: str) -> None:
    """Raise an InputError if an action has real-valued parts, over which nothing climbs."""
    if space.reals:
        raise InputError(
            f"{policy} climbs over choices, and {space} has real-valued parts: take "
            "fourier-thompson or rcp-cvae-submax"
        )


def climbed_actions(
    belief: ValueBelief,
    context: Floats,
    starts: Integers,
    sweeps: int,
    masks: Masks | None = None,
) -> Integers:
    """Return the action of the highest value that a climb finds in each context: ``[R, n, S]``.

    ``starts [R, T, S]`` are the actions at which T climbs begin in every context. A sweep sets one
    slot after the other to its best choice, given the choices of all other slots. The best end of
    the T climbs counts. ``masks`` are dropout masks of the two layers, ``[R, n, H]``.
    """
    belief.problem.check_context(context)
    network, sizes = belief.network, belief.problem.space.choices
    replicas, climbs, slots = starts.shape
    given = network.from_context(belief.inputs(context))
    step = max(1, CANDIDATE_ACTIVATIONS // (climbs * max(sizes) * given.shape[-1]))
    found = np.empty((replicas, context.shape[1], slots), dtype=np.int64)
    for replica in range(replicas):
        for begin in range(0, context.shape[1], step):
            part = (replica, slice(begin, begin + step))
            of_part = None if masks is None else (masks[0][part], masks[1][part])
            climb = _Climb(network.of_replica(replica), sizes, given[part], of_part)
            found[part] = climb.best_end(starts[replica], sweeps)
    return found


class _Climb:
    """Climbs over the choices of one replica, in n contexts whose part of layer 1 is ``given``."""

    def __init__(
        self, network: ValueNetwork, sizes: tuple[int, ...], given: Weights, masks: Masks | None
    ) -> None:
        self.network, self.given, self.masks = network, given, masks
        self.rows_of_slot = [
            network.choice_weight[first : first + size]
            for first, size in zip(first_choices(sizes), sizes, strict=True)
        ]

    def best_end(self, starts: Integers, sweeps: int) -> Integers:
        """Return the best end ``[n, S]`` of climbs that begin at ``starts [T, S]``."""
        contexts = np.repeat(np.arange(len(self.given)), len(starts))
        action = np.tile(starts, (len(self.given), 1))
        reached = self.given[contexts]
        for slot, rows in enumerate(self.rows_of_slot):
            reached += rows[action[:, slot]]
        value = np.empty(len(action))
        moving = np.arange(len(action))
        for _ in range(sweeps):
            before = action[moving]
            for slot, rows in enumerate(self.rows_of_slot):
                others = reached[moving] - rows[action[moving, slot]]
                logits = self._logits(others[:, None] + rows, contexts[moving])
                best = logits.argmax(axis=1)
                action[moving, slot] = best
                reached[moving] = others + rows[best]
                value[moving] = logits[np.arange(len(best)), best]
            # A climb that a whole sweep did not move has reached its end.
            moving = moving[(action[moving] != before).any(axis=1)]
            if not moving.size:
                break
        shape = (len(self.given), len(starts))
        ends = value.reshape(shape).argmax(axis=1)
        return action.reshape(*shape, -1)[np.arange(len(ends)), ends]

    def _logits(self, first: Weights, contexts: Integers) -> Numbers:
        """Return logits ``[m, M]``, less the head's bias, from the first layer's inputs.

        ``first`` is ``[m, M, H]``, and ``contexts [m]`` says which of the n contexts a row has.
        """
        np.maximum(first, 0, out=first)
        head = self.network.head_weight[None]
        if self.masks is not None:
            first *= self.masks[0][contexts][:, None]
            head = head * self.masks[1][contexts]
        second = first.reshape(-1, first.shape[-1]) @ self.network.second_weight
        second += self.network.second_bias
        np.maximum(second, 0, out=second)
        return (second.reshape(first.shape) @ head[:, :, None])[:, :, 0]


@serializable("climbing-state")
class ClimbingState(NamedTuple):
    """A value network, the actions ``starts [R, T, S]`` at which climbs begin, and dropout masks.

    The ``masks`` of its two layers are ``[R, P, H]``; there are none without dropout.
    """

    belief: ValueBelief
    starts: Integers
    masks: tuple[Mask, ...] = ()

    @property
    def problem(self) -> Problem:
        """The problem that the network is trained for."""
        return self.belief.problem

    @property
    def learned(self) -> Booleans:
        """Which replicas have rows to learn from, ``[R, 1]``."""
        return (self.belief.buffer.filled > 0)[:, None]

    def restricted(self, choices: Choices) -> Self:
        """Return the network with these choices alone; climbs begin at choices among them."""
        sizes = [len(slot) for slot in choices]
        return self._replace(belief=self.belief.restricted(choices), starts=self.starts % sizes)


@dataclass(frozen=True, kw_only=True)
class ClimbingPolicy(ValueNetworkPolicy[ClimbingState]):
    """A policy on a value network that climbs from ``climbs`` random joint actions.

    They are drawn at every update. From each of them coordinate ascent sets one slot after the
    other to its best choice, at most ``sweeps`` times. No joint action is listed. Before the first
    feedback the policy is uniform.
    """

    dropout: BelowOne = 0.1
    climbs: Count = 4
    sweeps: Count = 4

    def drawn_masks(self, replicas: int, rng: np.random.Generator) -> tuple[Mask, ...]:
        """Draw the dropout masks of decisions until the next update; none by default."""
        return ()

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ClimbingState:
        check_choices(problem.space, f"the {type(self).__name__} policy")
        belief = ValueBelief.unlisted(problem, replicas, self.hidden)
        masks = self.drawn_masks(replicas, rng)
        return ClimbingState(belief, problem.space.uniform((replicas, self.climbs), rng), masks)

    def update(
        self, state: ClimbingState, feedback: Feedback, rng: np.random.Generator
    ) -> ClimbingState:
        belief = state.belief.trained(feedback, self.training, self.dropout, rng)
        if belief is state.belief:
            return state
        new = np.any(feedback.weight > 0, axis=1)
        masks = self.drawn_masks(len(new), rng)
        starts = state.problem.space.uniform(state.starts.shape[:2], rng)
        starts = np.where(new[:, None, None], starts, state.starts)
        return ClimbingState(belief, starts, tuple(where_chosen(new, masks, state.masks)))


@dataclass(frozen=True)
class ClimbingDropoutThompson(ClimbingPolicy):
    """Apply a random dropout mask to a value network and take the best action that climbing finds.

    π(a | c) = Σ_m 1[a = climb(c; mask m)] / P. P = ``masks`` masks are drawn at each update, and a
    decision uses one of them, picked at random, for all its actions. From each of ``climbs`` random
    joint actions, coordinate ascent sets one slot after the other to its best choice, at most
    ``sweeps`` times. No joint action is listed. Before the first feedback the policy is uniform.
    The network has two layers of ``hidden`` units, and ``dropout`` is the probability of leaving
    out a unit.

    Reference: Gal and Ghahramani (2016); Hill et al. (2017) on climbing over slots.
    """

    dropout: BelowOne = 0.1
    masks: Count = 20

    def drawn_masks(self, replicas: int, rng: np.random.Generator) -> tuple[Mask, ...]:
        return dropout_masks((replicas, self.masks, self.hidden), self.dropout, rng)

    def act(self, state: ClimbingState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        picked = rng.integers(self.masks, size=context.shape[:2])
        action = self._climbed(state, context, picked)
        uniform = state.problem.space.uniform(context.shape[:2], rng)
        return ChosenActions(np.where(state.learned[..., None], action, uniform), None)

    def log_prob(self, state: ClimbingState, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        share = np.zeros(context.shape[:2])
        for mask in range(self.masks):
            end = self._climbed(state, context, np.full(context.shape[:2], mask))
            share += (end == action).all(axis=-1) / self.masks
        uniform = np.exp(-state.problem.space.log_measure)
        with np.errstate(divide="ignore"):
            return np.log(np.where(state.learned, share, uniform))

    def _climbed(self, state: ClimbingState, context: Floats, picked: Integers) -> Integers:
        """Climb under the masks with the indices ``picked [R, n]``."""
        index = picked[..., None]
        first, second = (np.take_along_axis(one, index, axis=1) for one in state.masks)
        return climbed_actions(state.belief, context, state.starts, self.sweeps, (first, second))


@dataclass(frozen=True)
class ClimbingEpsilonGreedy(ClimbingPolicy):
    """Explore uniformly with probability ε, else take the best action that climbing finds.

    π(a | c) = ε / M + (1 − ε) 1[a = climb(c)], with M joint actions. The value of (action ⊕
    context) is learned by a network with two layers of ``hidden`` units and ``dropout`` in
    training. From each of ``climbs`` random joint actions, which are drawn at every update,
    coordinate ascent sets one slot after the other to its best choice, at most ``sweeps`` times.
    No joint action is listed. Before the first feedback the policy is uniform.

    Reference: Sutton and Barto (2018), section 2.2; Hill et al. (2017) on climbing over slots.
    """

    epsilon: Probability = 0.1

    def act(self, state: ClimbingState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        greedy = climbed_actions(state.belief, context, state.starts, self.sweeps)
        explores = (rng.random(greedy.shape[:2]) < self.epsilon) | ~state.learned
        uniform = state.problem.space.uniform(greedy.shape[:2], rng)
        action = np.where(explores[..., None], uniform, greedy)
        return ChosenActions(action, self._log_prob(state, greedy, action))

    def log_prob(self, state: ClimbingState, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        greedy = climbed_actions(state.belief, context, state.starts, self.sweeps)
        return self._log_prob(state, greedy, action)

    def _log_prob(self, state: ClimbingState, greedy: Integers, action: Integers) -> Floats:
        uniform = np.exp(-state.problem.space.log_measure)
        same = (greedy == action).all(axis=-1)
        mixed = self.epsilon * uniform + (1 - self.epsilon) * same
        with np.errstate(divide="ignore"):
            log_prob: Floats = np.log(np.where(state.learned, mixed, uniform))
        return log_prob
