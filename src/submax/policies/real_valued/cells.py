"""A grid: a space with real-valued parts, divided into cells."""

import math
from dataclasses import dataclass, replace

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.contracts.problem import Problem
from submax.core.spaces.slots import Slots
from submax.core.spaces.space import Space


@dataclass(frozen=True)
class Cells:
    """The cells of a grid that divides every real-valued dimension into ``points`` equal parts.

    A cell is a row of whole numbers, one for each slot of the ``space``; for a slot of choices the
    number is the choice itself.
    """

    space: Space
    points: int

    @property
    def listed(self) -> Space:
        """The space whose joint actions are the cells."""
        if not self.space.reals:
            return self.space
        return Slots((*self.space.choices, *[self.points] * self.space.reals))

    @property
    def log_volume(self) -> float:
        """The logarithm of the volume of a cell; 0 if the space has no real-valued parts."""
        return self.space.log_measure - math.log(self.listed.size)

    def problem(self, problem: Problem) -> Problem:
        """The same problem with the cells as actions."""
        features = problem.action_features
        if features:
            features = (*features, *[()] * self.space.reals)
        return replace(problem, space=self.listed, action_features=features)

    def of(self, action: Actions) -> Integers:
        """The cell of each action: ``[..., S] -> [..., S]``.

        Rows of weight 0 may hold values outside the space; these get an arbitrary cell.
        """
        if not self.space.reals:
            return action
        first = len(self.space.choices)
        scaled = self.space.scaled(action)
        scaled[..., first:] *= self.points
        highest = np.array(self.listed.choices) - 1
        cell: Integers = np.clip(np.nan_to_num(np.floor(scaled)), 0, highest).astype(np.int64)
        return cell

    def within(self, cell: Integers, rng: np.random.Generator) -> Actions:
        """Draw an action uniformly from each cell: ``[..., S] -> [..., S]``."""
        first = len(self.space.choices)
        if not self.space.reals:
            return cell
        scaled = cell.astype(np.float64)
        scaled[..., first:] += rng.random((*cell.shape[:-1], self.space.reals))
        scaled[..., first:] /= self.points
        return self.space.unscaled(scaled)

    def centers(self) -> Floats:
        """The centres of all M cells, their real-valued parts scaled to 0 … 1: ``[M, S]``."""
        middle = self.listed.listing().astype(np.float64)
        first = len(self.space.choices)
        middle[..., first:] = (middle[..., first:] + 0.5) / self.points
        return middle
