"""Thompson sampling with a Gaussian process, approximated by random Fourier features."""

from dataclasses import dataclass
from typing import NamedTuple

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

MOST_CELLS = 2**14
"""The most cells of a grid; a decision evaluates a function in all of them."""
VALUES_AT_ONCE = 2**22
"""About how many numbers an intermediate array holds, 32 MB; more rows are processed in parts."""


@stored("fourier-state")
class FourierState(NamedTuple):
    """The random Fourier features, the sums of the regression, and draws from the posterior.

    Each of F features is √(2/F) cos(u·a + v·c + b). ``action_waves [R, F, A]`` are u, with A the
    inputs of an action, ``context_waves [R, F, D]`` are v, ``phase [R, F]`` is b. ``draws
    [R, P, F]`` are P vectors of coefficients; every decision uses one of them.
    """

    problem: Problem
    action_waves: Floats
    context_waves: Floats
    phase: Floats
    statistics: FourierStatistics
    draws: Floats


@dataclass(frozen=True)
class FourierThompson(Policy[FourierState]):
    """Draw a smooth reward function from its posterior and take the cell where it is highest.

    The prior is a Gaussian process with kernel exp(−‖x − x′‖² / 2). x consists of the real-valued
    parts of the action, scaled to 0 … 1 and divided by ``length``, its choices one-hot, and the
    context divided by ``context_length``. The process is approximated by ``features`` random
    cosines φ: with standardized rewards r, the coefficients have the posterior
    N(A⁻¹ Σ r φ, ``scale``² A⁻¹) with A = ``ridge`` I + Σ φ φᵀ. Larger ``scale`` explores more.

    Every real-valued part has ``points`` cells; within a cell the action is uniform. At every
    update ``draws`` functions are drawn, and each decision uses one of them at random, so that
    π(x | c) is the share of functions that are highest in the cell of x, over the cell's volume.

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
        cells = Cells(problem.space, self.points).listed
        if cells.size > MOST_CELLS:
            raise InputError(
                f"points = {self.points} in each dimension of {problem.space} make {cells.size} "
                f"cells, and fourier-thompson allows at most {MOST_CELLS}: set fewer points"
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
        feedback.check(state.problem)
        present = feedback.weight > 0
        learned = np.count_nonzero(present, axis=1) > 0
        if not learned.any():
            return state
        reward = np.where(present, feedback.reward, 0.0)
        context = np.where(present[..., None], feedback.context, 0.0)
        action = np.where(present[..., None], feedback.action, 0)
        inputs = _inputs(state.problem.space.scaled(action), state.problem.space.choices)
        angle = inputs @ state.action_waves.swapaxes(1, 2) + self._angle(state, context)
        features = np.sqrt(2 / self.features) * np.cos(angle)
        statistics = state.statistics.add(features, reward, feedback.weight)
        drawn = statistics.draws(self.draws, self.scale, self.ridge, rng)
        # Replicas without new rows keep their draws.
        draws = np.where(learned[:, None, None], drawn, state.draws)
        return state._replace(statistics=statistics, draws=draws)

    def _table(self, state: FourierState, cells: Cells) -> Floats:
        """Cosine and sine of u·a for every cell: ``[R, M, 2F]``."""
        inputs = _inputs(cells.centers(), state.problem.space.choices)
        angle = inputs @ state.action_waves.swapaxes(1, 2)
        return np.concatenate([np.cos(angle), np.sin(angle)], axis=-1)

    def _angle(self, state: FourierState, context: Floats) -> Floats:
        """The part of the angle that depends on the context, v·c + b: ``[R, n, F]``."""
        return context @ state.context_waves.swapaxes(1, 2) + state.phase[:, None]

    def _highest(
        self, state: FourierState, table: Floats, context: Floats, drawn: Floats
    ) -> Integers:
        """The highest cell of each function ``drawn [R, n, F]`` in its context: ``[R, n]``.

        Because cos(x + y) = cos x cos y − sin x sin y, one matrix product evaluates all cells.
        """
        angle = self._angle(state, context)
        parts = np.concatenate([drawn * np.cos(angle), -drawn * np.sin(angle)], axis=-1)
        index: Integers = (parts @ table.swapaxes(1, 2)).argmax(axis=-1)
        return index

    def _share(
        self, state: FourierState, table: Floats, context: Floats, index: Integers
    ) -> Floats:
        """The share of all drawn functions that are highest at the cells ``index [R, n]``."""
        replicas, rows = context.shape[:2]
        each = np.repeat(context, self.draws, axis=1)
        drawn = np.tile(state.draws, (1, rows, 1))
        highest = self._highest(state, table, each, drawn).reshape(replicas, rows, self.draws)
        share: Floats = (highest == index[..., None]).mean(axis=-1)
        return share


def _inputs(scaled: Actions, sizes: tuple[int, ...]) -> Floats:
    """The inputs of a scaled action: one-hot choices, then real parts: ``[..., S] -> [..., A]``."""
    slots = [
        (scaled[..., slot, None] == np.arange(size)).astype(np.float64)
        for slot, size in enumerate(sizes)
    ]
    return np.concatenate([*slots, scaled[..., len(sizes) :]], axis=-1)


def _parts(rows: int, width: int) -> list[slice]:
    step = max(1, VALUES_AT_ONCE // max(1, width))
    return [slice(begin, begin + step) for begin in range(0, rows or 1, step)]
