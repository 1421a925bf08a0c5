"""What the classic policies count, and draws from actions that are listed."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.numerics import draw, log_prob_of, tally
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.serialization import stored
from submax.core.spaces import Choices, Space


@stored("arm-statistics")
class ArmStatistics(NamedTuple):
    """``pulls [R, A]`` whose rewards have come back, and the sums ``rewards [R, A]`` of these."""

    problem: Problem
    pulls: Floats
    rewards: Floats

    @classmethod
    def empty(cls, problem: Problem, replicas: int) -> Self:
        """The statistics before any feedback."""
        problem.space.check_listable("this policy")
        shape = (replicas, problem.space.size)
        return cls(problem, np.zeros(shape), np.zeros(shape))

    def add(self, feedback: Feedback) -> Self:
        """The statistics after more feedback."""
        feedback.check(self.problem)
        index = self.problem.space.index(feedback.action)
        size = self.pulls.shape[-1]
        reward = feedback.weight * np.where(feedback.weight > 0, feedback.reward, 0.0)
        return self._replace(
            pulls=self.pulls + tally(index, feedback.weight, size),
            rewards=self.rewards + tally(index, reward, size),
        )

    def restricted(self, choices: Choices) -> Self:
        """Return the statistics of the joint actions of these choices alone."""
        kept = self.problem.space.indices_of(choices)
        problem = self.problem.restricted(choices)
        return self._replace(
            problem=problem, pulls=self.pulls[:, kept], rewards=self.rewards[:, kept]
        )

    def means(self) -> Floats:
        """Average reward of every action, ``[R, A]``; 0 for an action that was never pulled."""
        return self.rewards / np.where(self.pulls > 0, self.pulls, 1.0)

    def known_means(self) -> Floats:
        """Average reward of every action, ``[R, A]``; NaN for an action that was never pulled."""
        return np.where(self.pulls > 0, self.means(), np.nan)

    def successes(self, caller: str) -> Floats:
        """Number of successes, ``[R, A]``: each reward, scaled to 0 … 1, is a part of one.

        ``caller`` is named in the error if the bounds of rewards are not known.
        """
        lowest, highest = self.problem.scale.known_bounds(caller)
        return (self.rewards - lowest * self.pulls) / (highest - lowest)


Draw: TypeAlias = Callable[[Floats, int, np.random.Generator], Integers]


def drawn_listed(
    space: Space, probabilities: Floats, rows: int, rng: np.random.Generator, how: Draw = draw
) -> ChosenActions:
    """Draw so many rows, and say with which probability."""
    index = how(probabilities, rows, rng)
    return ChosenActions(space.action(index), log_prob_of(probabilities, index))


def drawn_one(space: Space, probabilities: Floats, rng: np.random.Generator) -> ChosenActions:
    """The same for one decision, in fewer steps: ``probabilities [M]``."""
    cumulated = probabilities.cumsum()
    index = int(cumulated.searchsorted(rng.random() * cumulated[-1], "right"))
    log_prob = math.log(probabilities.item(index))
    return ChosenActions(space.action(np.array([[index]])), np.array([[log_prob]]))


def split(values: Any, rows: int) -> list[Any]:
    """Arrays ``[R, n, ...]`` in parts of so many rows; one part without rows where n is 0."""
    return [values[:, begin : begin + rows] for begin in range(0, values.shape[1] or 1, rows)]


def joined(parts: Sequence[Any]) -> Any:
    """The parts of ``split``, or what was made of them, one behind the other."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
