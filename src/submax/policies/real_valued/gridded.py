"""Policies for listed actions on spaces with real-valued parts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import whole_number
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.contracts.wrapper_policy import WrapperPolicy
from submax.core.running.stored import stored
from submax.policies.classic.epsilon_greedy import EpsilonGreedy
from submax.policies.classic.thompson import Thompson
from submax.policies.linear.linear_thompson import LinearThompson
from submax.policies.real_valued.cells import Cells
from submax.policies.reward_conditioned.reward_conditioned import RewardConditioned


@stored("gridded-state")
class GriddedState(NamedTuple):
    """The state of the other policy, on the cells."""

    problem: Problem
    inner: Any


@dataclass(frozen=True)
class Gridded(WrapperPolicy):
    """Let another ``policy`` choose a cell, then draw uniformly within it.

    Every real-valued part is cut into ``points`` equal cells; for the other policy a cell is one
    more choice. The density is π(cell) over the volume of a cell. On a space without real-valued
    parts it is the other policy.
    """

    policy: Policy[Any] = field(default_factory=EpsilonGreedy)
    points: int = 10

    def __post_init__(self) -> None:
        whole_number("points", self.points, at_least=1)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> GriddedState:
        """As the other, on the cells."""
        inner = Cells(problem.space, self.points).problem(problem)
        return GriddedState(problem, self.policy.init(inner, replicas, rng))

    def act(self, state: GriddedState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        """A cell, then a point in it."""
        cells = self._cells(state)
        cell, log_prob = self.policy.act(state.inner, context, rng)
        action = cells.within(cell, rng)
        return ChosenActions(action, None if log_prob is None else log_prob - cells.log_volume)

    def log_prob(self, state: GriddedState, context: Floats, action: Actions) -> Floats:
        """That of the cell, over its volume."""
        state.problem.check_action(action)
        cells = self._cells(state)
        return self.policy.log_prob(state.inner, context, cells.of(action)) - cells.log_volume

    def update(
        self, state: GriddedState, feedback: Feedback, rng: np.random.Generator
    ) -> GriddedState:
        """Learn about the cells."""
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
        # Not those of the cells: the actions themselves are listed, if they can be.
        return Policy.probabilities(self, state, context)

    def record(
        self, state: GriddedState, action: Actions | None = None, *, upcoming: int | None = None
    ) -> GriddedState:
        cell = None if action is None else self._cells(state).of(action)
        return state._replace(inner=self.policy.record(state.inner, cell, upcoming=upcoming))

    def _cells(self, state: GriddedState) -> Cells:
        return Cells(state.problem.space, self.points)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Few cells, for policies that learn in different ways."""
        yield cls(EpsilonGreedy(0.3), points=3)
        yield cls(Thompson(), points=4)
        yield cls(RewardConditioned(), points=1)

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """The baselines for real-valued actions."""
        return {
            "grid-epsilon-greedy-0.1": cls(EpsilonGreedy(0.1)),
            "grid-thompson-1-1": cls(Thompson()),
            "grid-linear-thompson": cls(LinearThompson()),
            "grid-rcp-submax": cls(RewardConditioned()),
        }
