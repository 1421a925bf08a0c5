"""Slates: lists of items that people look through, and policies for cascading clicks."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Actions, Booleans, Floats, Integers
from submax.core.checks import Count, NonNegative, Positive, whole_number
from submax.core.environment import Outcome
from submax.core.errors import InputError
from submax.core.numerics import tally
from submax.core.policy import Policy, PolicyTraits
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.rewards import Discrete
from submax.core.serialization import serializable
from submax.core.spaces import Slots
from submax.environments.arms import WithOutcome
from submax.policies.ucb import upper_bound


@dataclass(frozen=True)
class Cascade(WithOutcome[Floats]):
    """Someone looks at the items from the first position on, and leaves after the first click.

    An action puts one of N ``items`` into each of K ``positions``. The attraction w_i of an item,
    the probability that someone who looks at it clicks on it, is drawn from Beta(``alpha``,
    ``beta``); an item that is shown twice is not clicked the second time. A click at position p
    pays (K + 1 − p) / K, and no click pays 0. So the reward also says where the click was, and it
    is best to show the most attractive items first. With w_p the attraction of the item at position
    p, the mean reward is Σ_p (K + 1 − p) / K · w_p Π_{q<p} (1 − w_q). The world is the table of
    attractions, ``[R, N]``.

    Reference: Kveton et al. (2015), Cascading bandits: learning to rank in the cascade model.

    *Departs from the paper:* there every click pays 1, and the position is observed beside it.
    """

    items: Count = 6
    positions: Count = 3
    alpha: Positive = 1.0
    beta: Positive = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("positions", self.positions, at_least=1, at_most=self.items)

    @property
    def problem(self) -> Problem:
        scale = Discrete((0.0, *sorted(self.payments().tolist())))
        return Problem(Slots((self.items,) * self.positions), scale=scale)

    def payments(self) -> Floats:
        """Return what a click at each position pays, from 1 down to 1 / K."""
        return np.arange(self.positions, 0, -1) / self.positions

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        return rng.beta(self.alpha, self.beta, size=(replicas, self.items))

    def contexts(self, world: Floats, count: int, rng: np.random.Generator) -> Floats:
        return np.zeros((len(world), count, 0))

    def mean_reward(self, world: Floats, context: Floats, action: Actions) -> Floats:
        return self._mean(self._attraction(world, action))

    def outcome(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        attraction = self._attraction(world, action)
        clicks = rng.random(attraction.shape) < attraction
        reward = np.where(clicks.any(axis=-1), self.payments()[clicks.argmax(axis=-1)], 0.0)
        return Outcome(reward, self._mean(attraction))

    def best_reward(self, world: Floats, context: Floats) -> Floats:
        best = np.sort(world, axis=1)[:, None, : -self.positions - 1 : -1]
        return np.broadcast_to(self._mean(best), context.shape[:2])

    def _attraction(self, world: Floats, action: Actions) -> Floats:
        """Return the attraction of each position, ``[R, n, K]``; that of a repeated item is 0."""
        repeated = [_shown_before(action, position) for position in range(self.positions)]
        found = world[np.arange(len(world))[:, None, None], action]
        return np.where(np.stack(repeated, axis=-1), 0.0, found)

    def _mean(self, attraction: Floats) -> Floats:
        """Return the mean reward of slates with these attractions, ``[..., K] -> [...]``."""
        passed = np.cumprod(1 - attraction, axis=-1)
        reached = np.concatenate([np.ones_like(passed[..., :1]), passed[..., :-1]], axis=-1)
        return (reached * attraction) @ self.payments()


def _shown_before(action: Integers, position: int) -> Booleans:
    """Whether the item of a position is already at an earlier one, ``[R, n]``."""
    return (action[..., :position] == action[..., position, None]).any(axis=-1)


@serializable("cascade-state")
class CascadeState(NamedTuple):
    """How often each item was looked at and clicked, both ``[R, N]``, and the ``rounds [R]``.

    ``order [R, N]`` are random numbers that decide between items with equal bounds.
    """

    problem: Problem
    looked: Floats
    clicked: Floats
    rounds: Floats
    order: Floats


@dataclass(frozen=True)
class CascadeKLUCB(Policy[CascadeState]):
    """Show the items with the highest q for which T_i kl(w̄_i, q) ≤ ln t + c ln ln t.

    T_i is how often the item was looked at, w̄_i the share of clicks among these, t the number of
    rounds, kl the divergence between Bernoulli distributions, and c is ``exploration``. A level
    below 0, which c ln ln t gives for t < e, counts as 0. As in the environment `Cascade`, a reward
    of (K + 1 − p) / K means a click at position p of K, and 0 that all positions were looked at
    without a click. An item that was never looked at comes first. If an item is not available at a
    position, the next one is shown.

    Reference: Kveton et al. (2015), Cascading bandits: learning to rank in the cascade model,
    algorithm CascadeKL-UCB with c = 3.
    """

    exploration: NonNegative = 3.0

    traits = PolicyTraits(uses_context=False)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> CascadeState:
        if problem.space.reals or problem.scale.bounds != (0.0, 1.0):
            raise InputError(
                "cascade-kl-ucb needs an item for each position and rewards from 0 to 1 "
                f"that say where the click was, not {problem.space} with {problem.scale}: use "
                "the environment Cascade, or another policy"
            )
        nothing = np.zeros((replicas, max(problem.space.choices)))
        order = rng.random(nothing.shape)
        return CascadeState(problem, nothing, nothing, np.zeros(replicas), order)

    def act(self, state: CascadeState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        action = np.repeat(self.slate(state)[:, None], context.shape[1], axis=1)
        return ChosenActions(action, np.zeros(action.shape[:2]))

    def log_prob(self, state: CascadeState, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        same = (action == self.slate(state)[:, None]).all(axis=-1)
        return np.where(same, 0.0, -np.inf)

    def update(
        self, state: CascadeState, feedback: Feedback, rng: np.random.Generator
    ) -> CascadeState:
        feedback.check(state.problem)
        there = feedback.weight > 0
        positions, items = state.problem.space.slots, state.looked.shape[1]
        reward = np.where(there, feedback.reward, 0.0)
        click = np.where(reward > 0, positions - np.round(reward * positions), positions)
        looked, clicked = state.looked, state.clicked
        for position in range(positions):
            item = np.where(there, feedback.action[..., position], 0)
            again = _shown_before(feedback.action, position)
            seen = there & (position <= click) & ~again
            looked = looked + tally(item, seen * feedback.weight, items)
            hit = seen & (position == click)
            clicked = clicked + tally(item, hit * feedback.weight, items)
        new = there.any(axis=1, keepdims=True)
        order = np.where(new, rng.random(state.order.shape), state.order)
        rounds = state.rounds + there.sum(axis=1)
        return CascadeState(state.problem, looked, clicked, rounds, order)

    def slate(self, state: CascadeState) -> Integers:
        """Return the slate of each replica, ``[R, K]``."""
        looked = np.where(state.looked > 0, state.looked, 1.0)
        logarithm = np.log(np.maximum(state.rounds, 1.0))[:, None]
        # Below e the second logarithm is negative; 1e-6 keeps it finite in the first round.
        level = logarithm + self.exploration * np.log(np.maximum(logarithm, 1e-6))
        bound = upper_bound(state.clicked / looked, np.maximum(level, 0.0) / looked)
        bound = np.where(state.looked > 0, bound, np.inf)
        # By the bound, and by the random number if bounds are equal; the highest comes first.
        ranking = np.lexsort((state.order, bound), axis=-1)[:, ::-1]
        replica, chosen = np.arange(len(bound)), []
        free = np.ones(bound.shape, dtype=bool)
        for size in state.problem.space.choices:
            allowed = ranking < size
            fresh = np.take_along_axis(free, ranking, axis=1) & allowed
            usable = np.where(fresh.any(axis=1, keepdims=True), fresh, allowed)
            item = ranking[replica, usable.argmax(axis=1)]
            free[replica, item] = False
            chosen.append(item)
        return np.stack(chosen, axis=1)
