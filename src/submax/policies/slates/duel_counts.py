"""What policies for duels count."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.numerics.tally import tally
from submax.core.running.stored import stored


class DuelBounds(NamedTuple):
    """Confidence bounds of the probability that arm i beats arm j, both ``[R, K, K]``."""

    lower: Floats
    upper: Floats


@stored("duel-counts")
class DuelCounts(NamedTuple):
    """How often arm i won against arm j, ``wins [R, K, K]``, and the number of ``duels [R]``."""

    problem: Problem
    wins: Floats
    duels: Floats

    @classmethod
    def empty(cls, problem: Problem, replicas: int, policy: str) -> Self:
        """Return counts before the first duel; refuse problems that are not duels."""
        choices, bounds = problem.space.choices, problem.scale.bounds
        pairs = len(choices) == 2 and choices[0] == choices[1] and not problem.space.reals
        if not pairs or bounds != (0.0, 1.0):
            raise InputError(
                f"{policy} needs pairs of the same arms, such as Slots((5, 5)), and rewards from 0 "
                f"to 1 that say whether the first arm of the pair won, not {problem.space} with "
                f"{problem.scale}: take the environment Dueling, or another policy"
            )
        arms = choices[0]
        return cls(problem, np.zeros((replicas, arms, arms)), np.zeros(replicas))

    def add(self, feedback: Feedback) -> Self:
        """Return the counts after more duels; a reward between 0 and 1 is a part of a win."""
        feedback.check(self.problem)
        there = feedback.weight > 0
        arms = self.wins.shape[1]
        reward = np.where(there, feedback.reward, 0.0)
        first, second = (np.where(there, feedback.action[..., slot], 0) for slot in range(2))
        won = tally(first * arms + second, feedback.weight * reward, arms**2)
        lost = tally(second * arms + first, feedback.weight * (1 - reward), arms**2)
        return self._replace(
            wins=self.wins + (won + lost).reshape(self.wins.shape),
            duels=self.duels + there.sum(axis=1),
        )

    def bounds(self, exploration: float) -> DuelBounds:
        """Return w / n ± √(α ln t / n) for the next duel t; both terms are 1 if n is 0.

        w are the wins of i against j, n their duels, and α is ``exploration``. The bounds of an arm
        against itself are 1/2.
        """
        together = self.wins + self.wins.transpose(0, 2, 1)
        met = together > 0
        number = np.where(met, together, 1.0)
        share = np.where(met, self.wins / number, 1.0)
        spread = np.sqrt(exploration * np.log(self.duels + 1)[:, None, None] / number)
        radius = np.where(met, spread, 1.0)
        itself = np.eye(self.wins.shape[1], dtype=bool)
        return DuelBounds(
            np.where(itself, 0.5, share - radius), np.where(itself, 0.5, share + radius)
        )
