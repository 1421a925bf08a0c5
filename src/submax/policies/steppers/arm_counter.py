"""Pulls and rewards of every arm, counted in place."""

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.problem import Problem
from submax.policies.arm_statistics import ArmStatistics


class ArmCounter:
    """The arrays of `ArmStatistics`, to which single decisions are added without a copy.

    ``statistics`` always shows the present numbers. ``place`` is where the last decisions are in
    the flattened arrays.
    """

    def __init__(self, problem: Problem, replicas: int) -> None:
        self.statistics = ArmStatistics.empty(problem, replicas)
        self.pulls = self.statistics.pulls.ravel()
        self.rewards = self.statistics.rewards.ravel()
        self._first: Integers = np.arange(replicas, dtype=np.int64) * problem.space.size

    def add(self, index: Integers, reward: Floats) -> Integers:
        """Count one decision of each replica; return the places of these arms."""
        place: Integers = self._first + index
        self.pulls[place] += 1.0
        self.rewards[place] += reward
        return place
