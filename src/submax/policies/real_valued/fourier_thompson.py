"""Thompson sampling with a Gaussian process, by random Fourier features."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import positive, whole_number
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.running.stored import stored
from submax.policies.real_valued.cells import Cells
from submax.policies.real_valued.fourier_statistics import FourierStatistics, check_regression

LARGEST_LISTING = 2**14
"""The most cells whose values are compared for a decision."""
AT_ONCE = 2**22
"""About so many values are worked on at a time."""


@stored("fourier-state")
class FourierState(NamedTuple):
    """The waves, the sums, and draws from the posterior.

    A feature is √(2/F) cos(u·a + v·c + b): ``action_waves [R, F, A]`` are u, with A the inputs of
    an action, ``context_waves [R, F, D]`` are v, ``phase [R, F]`` is b; ``draws [R, P, F]`` are
    coefficients, of which every decision takes one.
    """

    problem: Problem
    action_waves: Floats
    context_waves: Floats
    phase: Floats
    statistics: FourierStatistics
    draws: Floats


@dataclass(frozen=True)
class FourierThompson(Policy[FourierState]):
    """Draw a smooth function of action and context from its posterior, take its highest cell.

    The prior is a Gaussian process with kernel exp(−‖x − x′‖² / 2), where x is the action, its
    real-valued parts from 0 to 1 over ``length`` and its choices one-hot, and the context over
    ``context_length``; ``features`` random waves stand for it. Rewards are standardized. At every
    refit ``draws`` functions are drawn and every decision takes one of them, so that π is the share
    of the functions that are highest in a cell, over its volume. Each real-valued part has
    ``points`` cells; within a cell the action is uniform.

    Reference: Rahimi and Recht (2007); Chowdhury and Gopalan (2017).
    """

    points: int = 20
    length: float = 0.2
    context_length: float = 1.0
    features: int = 64
    draws: int = 64
    scale: float = 1.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        whole_number("points", self.points, at_least=1)
        positive("length", self.length)
        positive("context_length", self.context_length)
        check_regression(self.features, self.draws, self.scale, self.ridge)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> FourierState:
        """Draws from the prior."""
        cells = Cells(problem.space, self.points).listed
        if cells.size > LARGEST_LISTING:
            raise InputError(
                f"this policy compares at most {LARGEST_LISTING} cells, and {self.points} points "
                f"in each dimension of {problem.space} make {cells.size}"
            )
        shape = (replicas, self.features)
        reals, choices = problem.space.reals, sum(problem.space.choices)
        widths = np.array([1.0] * choices + [self.length] * reals)
        statistics = FourierStatistics.empty(*shape)
        return FourierState(
            problem,
            rng.standard_normal((*shape, len(widths))) / widths,
            rng.standard_normal((*shape, problem.context_width)) / self.context_length,
            rng.uniform(0, 2 * np.pi, shape),
            statistics,
            statistics.draws(self.draws, self.scale, self.ridge, rng),
        )

    def act(self, state: FourierState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        """The highest cell of one function for each row, and a point in it."""
        state.problem.check_context(context)
        cells = Cells(state.problem.space, self.points)
        member = rng.integers(self.draws, size=context.shape[:2])
        replica = np.arange(len(context))[:, None]
        table = self._table(state, cells)
        highest = [
            self._highest(state, table, context[:, rows], state.draws[replica, member[:, rows]])
            for rows in _parts(context.shape[1], table.size)
        ]
        cell = cells.listed.action(np.concatenate(highest, axis=1))
        return ChosenActions(cells.within(cell, rng), None)

    def log_prob(self, state: FourierState, context: Floats, action: Actions) -> Floats:
        """Count the functions that are highest in the cell of each action."""
        state.problem.check_context(context)
        state.problem.check_action(action)
        cells = Cells(state.problem.space, self.points)
        index = cells.listed.index(cells.of(action))
        table = self._table(state, cells)
        found = [
            self._share(state, table, context[:, rows], index[:, rows])
            for rows in _parts(context.shape[1], table.size * self.draws)
        ]
        with np.errstate(divide="ignore"):
            return np.log(np.concatenate(found, axis=1)) - cells.log_volume

    def update(
        self, state: FourierState, feedback: Feedback, rng: np.random.Generator
    ) -> FourierState:
        """Add to the regression, and draw anew for the replicas that heard something."""
        feedback.check(state.problem)
        there = feedback.weight > 0
        news = np.count_nonzero(there, axis=1) > 0
        if not news.any():
            return state
        reward = np.where(there, feedback.reward, 0.0)
        context = np.where(there[..., None], feedback.context, 0.0)
        action = np.where(there[..., None], feedback.action, 0)
        inputs = _inputs(state.problem.space.scaled(action), state.problem.space.choices)
        angle = inputs @ state.action_waves.swapaxes(1, 2) + self._angle(state, context)
        features = np.sqrt(2 / self.features) * np.cos(angle)
        statistics = state.statistics.add(features, reward, feedback.weight)
        drawn = statistics.draws(self.draws, self.scale, self.ridge, rng)
        draws = np.where(news[:, None, None], drawn, state.draws)
        return state._replace(statistics=statistics, draws=draws)

    def _table(self, state: FourierState, cells: Cells) -> Floats:
        """Cosine and sine of u·a for every cell: ``[R, M, 2F]``."""
        inputs = _inputs(cells.centers(), state.problem.space.choices)
        angle = inputs @ state.action_waves.swapaxes(1, 2)
        return np.concatenate([np.cos(angle), np.sin(angle)], axis=-1)

    def _angle(self, state: FourierState, context: Floats) -> Floats:
        """The part of the context, v·c + b: ``[R, n, F]``."""
        return context @ state.context_waves.swapaxes(1, 2) + state.phase[:, None]

    def _highest(
        self, state: FourierState, table: Floats, context: Floats, drawn: Floats
    ) -> Integers:
        """The highest cell of each function ``drawn [R, n, F]`` in its context: ``[R, n]``.

        cos(x + y) = cos x cos y − sin x sin y, so that one product of matrices is enough.
        """
        angle = self._angle(state, context)
        parts = np.concatenate([drawn * np.cos(angle), -drawn * np.sin(angle)], axis=-1)
        index: Integers = (parts @ table.swapaxes(1, 2)).argmax(axis=-1)
        return index

    def _share(
        self, state: FourierState, table: Floats, context: Floats, index: Integers
    ) -> Floats:
        """The share of all functions that are highest at ``index [R, n]``."""
        replicas, rows = context.shape[:2]
        each = np.repeat(context, self.draws, axis=1)
        drawn = np.tile(state.draws, (1, rows, 1))
        highest = self._highest(state, table, each, drawn).reshape(replicas, rows, self.draws)
        share: Floats = (highest == index[..., None]).mean(axis=-1)
        return share

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Few points, waves and draws."""
        yield cls(points=3, features=8, draws=5)

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """The default."""
        return {"fourier-thompson": cls()}


def _inputs(scaled: Actions, sizes: tuple[int, ...]) -> Floats:
    """One-hot choices, then the real-valued parts: ``[..., S] -> [..., A]``."""
    slots = [
        (scaled[..., slot, None] == np.arange(size)).astype(np.float64)
        for slot, size in enumerate(sizes)
    ]
    return np.concatenate([*slots, scaled[..., len(sizes) :]], axis=-1)


def _parts(rows: int, width: int) -> list[slice]:
    step = max(1, AT_ONCE // max(1, width))
    return [slice(begin, begin + step) for begin in range(0, rows or 1, step)]
