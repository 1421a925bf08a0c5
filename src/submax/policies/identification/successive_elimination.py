"""Successive elimination of arms."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import positive, probability
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.policies.classic.arm_statistics import ArmStatistics
from submax.policies.identification.best_arm_policy import BestArmPolicy

CONSTANT = 5.0
"""The constant c of the confidence radius; the reference asks for more than 4."""


@stored("elimination-state")
class EliminationState(NamedTuple):
    """The statistics of the arms, and which of them are still in the race, ``active [R, A]``."""

    problem: Problem
    arms: ArmStatistics
    active: Booleans

    def restricted(self, choices: Choices) -> Self:
        """Return the race of these choices alone; all of them if none is in the race any more."""
        kept = self.problem.space.indices_of(choices)
        active = self.active[:, kept]
        return self._replace(
            problem=self.problem.restricted(choices),
            arms=self.arms.restricted(choices),
            active=active | ~active.any(axis=1, keepdims=True),
        )


@dataclass(frozen=True)
class SuccessiveElimination(BestArmPolicy[EliminationState]):
    """Take the active arms in turn; drop an arm that lies 2 α_t below the best mean.

    α_t = √(ln(c K t² / δ) / t), with K arms, t the pulls of the active arm that has the fewest, and
    c = 5. With probability 1 − δ the last active arm is the best one; δ is ``failure``. Rewards are
    scaled to 0 … 1.

    Reference: Even-Dar, Mannor and Mansour (2006), Action elimination and stopping conditions,
    algorithm 3.
    """

    failure: float = 0.05

    def __post_init__(self) -> None:
        positive("failure", self.failure)
        probability("failure", self.failure)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> EliminationState:
        problem.scale.known_bounds("successive elimination")
        arms = ArmStatistics.empty(problem, replicas)
        return EliminationState(problem, arms, np.ones(arms.pulls.shape, dtype=bool))

    def probabilities(self, state: EliminationState, context: Floats) -> Floats:
        pulls = np.where(state.active, state.arms.pulls, np.inf)
        return self.even(pulls == pulls.min(axis=-1, keepdims=True))

    def update(
        self, state: EliminationState, feedback: Feedback, rng: np.random.Generator
    ) -> EliminationState:
        arms = state.arms.add(feedback)
        pulls = np.where(state.active, arms.pulls, np.inf).min(axis=-1, keepdims=True)
        enough = np.maximum(pulls, 1.0)
        radius = np.sqrt(np.log(CONSTANT * arms.pulls.shape[1] * enough**2 / self.failure) / enough)
        mean = np.where(state.active, self._means(arms), -np.inf)
        near = mean.max(axis=-1, keepdims=True) - mean < 2 * radius
        new = (feedback.weight > 0).any(axis=1, keepdims=True)
        active = state.active & (near | (pulls < 1) | ~new)
        return EliminationState(state.problem, arms, active)

    def recommend(self, state: EliminationState) -> Integers:
        mean = np.where(state.active, self._means(state.arms), -np.inf)
        best: Integers = mean.argmax(axis=-1)
        return best

    def stopped(self, state: EliminationState) -> Booleans:
        alone: Booleans = state.active.sum(axis=-1) == 1
        return alone

    def _means(self, arms: ArmStatistics) -> Floats:
        successes = arms.successes("successive elimination")
        return successes / np.where(arms.pulls > 0, arms.pulls, 1.0)
