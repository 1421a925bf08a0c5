"""Base class of policies for cascading clicks that rank items by upper confidence bounds."""

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.numerics.tally import tally
from submax.core.running.stored import stored


@stored("cascade-state")
class CascadeState(NamedTuple):
    """How often each item was looked at and clicked, both ``[R, N]``, and the ``rounds [R]``.

    ``order [R, N]`` are random numbers that decide between items with equal bounds.
    """

    problem: Problem
    looked: Floats
    clicked: Floats
    rounds: Floats
    order: Floats


class CascadePolicy(Policy[CascadeState]):
    """Show the items with the highest upper confidence bounds, the highest first.

    As in the environment `Cascade`, a reward of (K + 1 − p) / K means a click at position p of K,
    and 0 that all positions were looked at without a click. An item that was never looked at comes
    first. If an item is not available at a position, the next one is shown.
    """

    @abstractmethod
    def bound(self, share: Floats, looked: Floats, rounds: Floats) -> Floats:
        """Return the bound of items that were looked at, ``[R, N]``.

        ``share [R, N]`` is the share of clicks among the ``looked [R, N]`` looks, and
        ``rounds [R, 1]`` the number of rounds so far, at least 1.
        """

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> CascadeState:
        bounds = problem.scale.bounds
        if problem.space.reals or bounds != (0.0, 1.0):
            raise InputError(
                f"{type(self).__name__} needs an item for each position and rewards from 0 to 1 that say where "
                f"the click was, not {problem.space} with {problem.scale}: take the environment "
                "Cascade, or another policy"
            )
        items = max(problem.space.choices)
        nothing = np.zeros((replicas, items))
        return CascadeState(
            problem, nothing, nothing.copy(), np.zeros(replicas), rng.random((replicas, items))
        )

    def act(self, state: CascadeState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        rows = context.shape[1]
        slate = self.slate(state)
        action = np.repeat(slate[:, None], rows, axis=1)
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
        rounds = np.maximum(state.rounds, 1.0)[:, None]
        bound = self.bound(state.clicked / looked, looked, rounds)
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


def _shown_before(
    action: Integers, position: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool]]:
    """Whether the item of a position is already at an earlier one, ``[R, n]``."""
    earlier = action[..., :position] == action[..., position, None]
    return np.asarray(earlier.any(axis=-1))
