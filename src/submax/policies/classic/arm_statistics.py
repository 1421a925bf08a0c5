"""Number of pulls and sum of rewards of every joint action: the state of the classic policies."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.numerics.tally import tally
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices


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
