"""A policy for discrete actions, used on a grid of real-valued actions."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import whole_number
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.contracts.wrapper_policy import WrapperPolicy
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.policies.classic.epsilon_greedy import EpsilonGreedy
from submax.policies.real_valued.cells import Cells


@stored("gridded-state")
class GriddedState(NamedTuple):
    """The problem, and the ``inner`` state of the wrapped policy, whose actions are cells."""

    problem: Problem
    inner: Any


@dataclass(frozen=True)
class Gridded(WrapperPolicy):
    """Let another policy choose a cell of a grid, then draw the action uniformly from the cell.

    π(x | c) = π(cell of x | c) / volume of a cell. The wrapped ``policy`` sees discrete actions:
    every real-valued part is divided into ``points`` equal parts, each of them a choice. On a
    space without real-valued parts this is the wrapped policy itself.

    Reference: Kleinberg (2004), for bandits on a uniform grid.
    """

    policy: Policy[Any] = field(default_factory=EpsilonGreedy)
    points: int = 10

    def __post_init__(self) -> None:
        whole_number("points", self.points, at_least=1)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> GriddedState:
        inner = Cells(problem.space, self.points).problem(problem)
        return GriddedState(problem, self.policy.init(inner, replicas, rng))

    def act(self, state: GriddedState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        cells = self._cells(state)
        cell, log_prob = self.policy.act(state.inner, context, rng)
        action = cells.within(cell, rng)
        return ChosenActions(action, None if log_prob is None else log_prob - cells.log_volume)

    def log_prob(self, state: GriddedState, context: Floats, action: Actions) -> Floats:
        state.problem.check_action(action)
        cells = self._cells(state)
        return self.policy.log_prob(state.inner, context, cells.of(action)) - cells.log_volume

    def update(
        self, state: GriddedState, feedback: Feedback, rng: np.random.Generator
    ) -> GriddedState:
        feedback.check(state.problem)
        cells = self._cells(state)
        log_prob = feedback.log_prob
        inner = self.policy.update(
            state.inner,
            feedback._replace(
                action=cells.of(feedback.action),
                log_prob=None if log_prob is None else log_prob + cells.log_volume,
            ),
            rng,
        )
        return state._replace(inner=inner)

    def probabilities(self, state: GriddedState, context: Floats) -> Floats:
        # Not the probabilities of cells: the contract asks for those of the actions themselves.
        return Policy.probabilities(self, state, context)

    def restricted(self, state: GriddedState, choices: Choices) -> GriddedState | None:
        """Restrict the wrapped policy; None if there are real-valued parts."""
        if state.problem.space.reals:
            return None
        inner = self.policy.restricted(state.inner, choices)
        return None if inner is None else GriddedState(state.problem.restricted(choices), inner)

    def record(
        self, state: GriddedState, action: Actions | None = None, *, upcoming: int | None = None
    ) -> GriddedState:
        cell = None if action is None else self._cells(state).of(action)
        return state._replace(inner=self.policy.record(state.inner, cell, upcoming=upcoming))

    def _cells(self, state: GriddedState) -> Cells:
        return Cells(state.problem.space, self.points)
