"""Pulls and rewards of every joint action, the state of the classic policies."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.numerics.tally import tally
from submax.core.running.stored import stored


@stored("arm-statistics")
class ArmStatistics(NamedTuple):
    """``pulls [R, A]`` and the sum of their ``rewards [R, A]``, as far as they have come back."""

    problem: Problem
    pulls: Floats
    rewards: Floats

    @classmethod
    def empty(cls, problem: Problem, replicas: int) -> Self:
        """Nothing pulled."""
        problem.space.check_listable("this policy")
        shape = (replicas, problem.space.size)
        return cls(problem, np.zeros(shape), np.zeros(shape))

    def add(self, feedback: Feedback) -> Self:
        """Count what came back."""
        feedback.check(self.problem)
        index = self.problem.space.index(feedback.action)
        size = self.pulls.shape[-1]
        earned = feedback.weight * np.where(feedback.weight > 0, feedback.reward, 0.0)
        return self._replace(
            pulls=self.pulls + tally(index, feedback.weight, size),
            rewards=self.rewards + tally(index, earned, size),
        )

    def means(self) -> Floats:
        """Average reward of every action; 0 where there is none."""
        return self.rewards / np.where(self.pulls > 0, self.pulls, 1.0)

    def successes(self, who: str) -> Floats:
        """The rewards as parts of the way from the lowest to the highest, for someone who asks."""
        lowest, highest = self.problem.scale.known_bounds(who)
        return (self.rewards - lowest * self.pulls) / (highest - lowest)
