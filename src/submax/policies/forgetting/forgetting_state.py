"""Statistics of the arms in which old rows count less, or not at all."""

from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.memory.buffer import Buffer
from submax.core.memory.memory import Memory
from submax.core.numerics.tally import tally
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.policies.classic.arm_statistics import ArmStatistics


@stored("forgetting-state")
class ForgettingState(NamedTuple):
    """``arms``, the weighted pulls and rewards; ``history``, the rows of a window, or None."""

    problem: Problem
    arms: ArmStatistics
    history: Buffer | None

    def restricted(self, choices: Choices) -> Self:
        """Return the state with the joint actions of these choices alone, without history."""
        arms = self.arms.restricted(choices)
        return self._replace(problem=arms.problem, arms=arms, history=None)

    @classmethod
    def empty(cls, problem: Problem, replicas: int, *, window: bool) -> Self:
        """Return the state before any feedback; rows are stored if there is a window."""
        history = Buffer.empty(replace(problem, context_width=0), replicas) if window else None
        return cls(problem, ArmStatistics.empty(problem, replicas), history)

    def discounted(self, feedback: Feedback, discount: float) -> Self:
        """Return the state after feedback; every new row multiplies the weight of older ones."""
        feedback.check(self.problem)
        there = feedback.weight > 0
        new = there.sum(axis=1)
        later = np.maximum(new[:, None] - np.cumsum(there, axis=1), 0)
        weight = feedback.weight * discount**later
        added = self._counted(feedback, weight)
        kept = (discount**new)[:, None]
        arms = self.arms._replace(
            pulls=kept * self.arms.pulls + added.pulls,
            rewards=kept * self.arms.rewards + added.rewards,
        )
        return self._replace(arms=arms)

    def windowed(self, feedback: Feedback, window: int, rng: np.random.Generator) -> Self:
        """Return the state after feedback, in which only the last ``window`` rows count."""
        feedback.check(self.problem)
        assert self.history is not None, "this state was made without a window"
        nothing = np.zeros((*feedback.reward.shape, 0))
        rows = feedback._replace(context=nothing)
        history = self.history.add(rows, Memory(window=window), rng)
        kept = Feedback(
            np.zeros((*history.reward.shape, 0)),
            history.action.astype(np.int64),
            history.reward,
            None,
            history.weight,
        )
        return self._replace(arms=self._counted(kept, history.weight), history=history)

    def _counted(self, feedback: Feedback, weight: Floats) -> ArmStatistics:
        index, size = self.problem.space.index(feedback.action), self.arms.pulls.shape[1]
        reward = weight * np.where(weight > 0, feedback.reward, 0.0)
        return self.arms._replace(
            pulls=tally(index, weight, size), rewards=tally(index, reward, size)
        )
