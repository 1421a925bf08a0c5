"""Real-valued actions with one best point that depends on the context."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import non_negative, positive, whole_number
from submax.core.contracts.environment import Environment, Outcome
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.rewards.continuous import Continuous
from submax.core.spaces.box import Box
from submax.core.spaces.mixed import Mixed
from submax.core.spaces.slots import Slots
from submax.environments.networks.truth_network import draw_directions

MIDDLE = 0.5
"""The middle of the unit box, around which the best point moves."""
REACH = 0.3
"""How far the best point is from the middle at most: it stays away from the edges of the box."""
LOWEST_HEIGHT = 0.3
"""The least height of a choice; the best choice of a slot has height 1."""


class Bumps(NamedTuple):
    """The hidden truth: what determines the best point, and the height of every choice.

    With d dimensions, contexts of width D and C choices in all slots together: φ is
    ``phase [R, d]``, W is ``context_weight [R, D, d]``, ψ is ``choice_phase [R, C, d]``, and
    ``height [R, C]``.
    """

    phase: Floats
    context_weight: Floats
    choice_phase: Floats
    height: Floats


@dataclass(frozen=True)
class Bump(Environment[Bumps]):
    """A point x of the d-dimensional unit box has reward h(a) exp(−‖x − m(a, c)‖² / 2w²) + σ ε.

    The best point is m(a, c) = ½ + 0.3 sin(φ + Wᵀc + Σₛ ψ(aₛ)), between 0.2 and 0.8 everywhere. φ
    is uniform on the circle, W and ψ are normal; each replica has its own. d is ``dimensions``, w
    is ``width``, σ is ``noise``, ε is normal. Contexts c are uniform on the unit sphere in
    R^``context``; if ``context`` is 0, there are no contexts.

    If ``sizes`` is given, an action begins with a choice aₛ in each slot, and h(a) is the mean of
    the choices' heights: 1 for the best choice of a slot, between 0.3 and 1 for the others. Then
    the choices determine both the height and the place of the bump. Without ``sizes``, h = 1 and
    the sum over s is 0. The best action has expected reward 1 in every context.
    """

    dimensions: int = 1
    sizes: tuple[int, ...] = ()
    context: int = 2
    width: float = 0.15
    noise: float = 0.2

    def __post_init__(self) -> None:
        whole_number("dimensions", self.dimensions, at_least=1)
        if not isinstance(self.sizes, tuple):
            raise InputError(
                f"sizes must be a tuple of whole numbers, such as (3, 2), not {self.sizes!r}",
                parameter="sizes",
            )
        if self.sizes:
            Slots(self.sizes)
        whole_number("context", self.context, at_least=0)
        positive("width", self.width)
        non_negative("noise", self.noise)

    @property
    def problem(self) -> Problem:
        low, high = (0.0,) * self.dimensions, (1.0,) * self.dimensions
        space = Mixed(self.sizes, low, high) if self.sizes else Box(low, high)
        return Problem(space, self.context, Continuous())

    def reset(self, replicas: int, rng: np.random.Generator) -> Bumps:
        choices = sum(self.sizes)
        return Bumps(
            rng.uniform(-math.pi, math.pi, (replicas, self.dimensions)),
            rng.standard_normal((replicas, self.context, self.dimensions)),
            rng.standard_normal((replicas, choices, self.dimensions)),
            self._heights(replicas, rng),
        )

    def contexts(self, world: Bumps, count: int, rng: np.random.Generator) -> Floats:
        return draw_directions(len(world.phase), count, self.context, rng)

    def best_point(self, world: Bumps, context: Floats, choice: Integers) -> Floats:
        """The best point for each choice: ``[R, n, S] -> [R, n, d]``."""
        phase = world.phase[:, None] + context @ world.context_weight
        phase += _rows_of(world.choice_phase, self._index(choice)).sum(axis=2)
        point: Floats = MIDDLE + REACH * np.sin(phase)
        return point

    def mean_reward(self, world: Bumps, context: Floats, action: Actions) -> Floats:
        choice, point = np.split(action, [len(self.sizes)], axis=-1)
        choice = choice.astype(np.int64)
        distance = (point - self.best_point(world, context, choice)) / self.width
        mean: Floats = np.exp(-np.square(distance).sum(axis=-1) / 2)
        if self.sizes:
            mean *= _rows_of(world.height, self._index(choice)).mean(axis=2)
        return mean

    def reward(
        self, world: Bumps, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Floats:
        return self.outcome(world, context, action, rng).reward

    def outcome(
        self, world: Bumps, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        mean = self.mean_reward(world, context, action)
        return Outcome(mean + self.noise * rng.standard_normal(mean.shape), mean)

    def best_reward(self, world: Bumps, context: Floats) -> Floats:
        """1, the top of the bump with the best choices."""
        return np.ones(context.shape[:2])

    def _heights(self, replicas: int, rng: np.random.Generator) -> Floats:
        """Draw the heights ``[R, C]``: 1 for one choice of each slot, lower for the others."""
        height = rng.uniform(LOWEST_HEIGHT, 1.0, (replicas, sum(self.sizes)))
        best = rng.integers(self.sizes, size=(replicas, len(self.sizes)))
        np.put_along_axis(height, self._index(best), 1.0, axis=1)
        return height

    def _index(self, choice: Integers) -> Integers:
        """The index of a choice among the C choices of all slots: ``[..., S] -> [..., S]``."""
        index: Integers = choice + np.cumsum((0, *self.sizes[:-1]))
        return index


def _rows_of(table: Floats, index: Integers) -> Floats:
    """Rows of each replica's table: ``[R, C, ...]`` and ``[R, n, S] -> [R, n, S, ...]``."""
    rows: Floats = table[np.arange(len(table))[:, None, None], index]
    return rows
