"""A space with real-valued parts, cut into cells."""

import math
from dataclasses import dataclass, replace

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.contracts.problem import Problem
from submax.core.spaces.slots import Slots
from submax.core.spaces.space import Space


@dataclass(frozen=True)
class Cells:
    """``points`` equal parts of every real-valued dimension; choices stay choices.

    A cell is a row of whole numbers, one for each slot of the space.
    """

    space: Space
    points: int

    @property
    def listed(self) -> Space:
        """The cells as joint choices."""
        if not self.space.reals:
            return self.space
        return Slots((*self.space.choices, *[self.points] * self.space.reals))

    @property
    def log_volume(self) -> float:
        """Logarithm of the volume of a cell; 0 without real-valued parts."""
        return self.space.log_measure - math.log(self.listed.size)

    def problem(self, problem: Problem) -> Problem:
        """The same problem with cells as its actions."""
        features = problem.action_features
        if features:
            features = (*features, *[()] * self.space.reals)
        return replace(problem, space=self.listed, action_features=features)

    def of(self, action: Actions) -> Integers:
        """The cell of each action; what lies outside the space, as absent rows may, is anywhere."""
        if not self.space.reals:
            return action
        first = len(self.space.choices)
        place = self.space.scaled(action)
        place[..., first:] *= self.points
        highest = np.array(self.listed.choices) - 1
        cell: Integers = np.clip(np.nan_to_num(np.floor(place)), 0, highest).astype(np.int64)
        return cell

    def within(self, cell: Integers, rng: np.random.Generator) -> Actions:
        """A point drawn uniformly in each cell."""
        first = len(self.space.choices)
        if not self.space.reals:
            return cell
        scaled = cell.astype(np.float64)
        scaled[..., first:] += rng.random((*cell.shape[:-1], self.space.reals))
        scaled[..., first:] /= self.points
        return self.space.unscaled(scaled)

    def centers(self) -> Floats:
        """The middle of every cell, in the order of their numbers, reals scaled: ``[M, S]``."""
        middle = self.listed.listing().astype(np.float64)
        first = len(self.space.choices)
        middle[..., first:] = (middle[..., first:] + 0.5) / self.points
        return middle
