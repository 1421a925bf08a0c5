"""Real-valued actions: prices and other numbers, and policies for them."""

import math
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import scipy

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import Allowed, Count, NonNegative, Positive, whole_number
from submax.core.environment import Outcome
from submax.core.errors import InputError
from submax.core.policy import Policy, WrapperPolicy
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.rewards import Continuous
from submax.core.serialization import serializable
from submax.core.spaces import Box, Choices, Slots, Space
from submax.environments.arms import WithNoise, WithOutcome
from submax.environments.contextual import draw_directions
from submax.policies.arm_statistics import by_rows
from submax.policies.epsilon_greedy import EpsilonGreedy

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
class SmoothReward(WithNoise[Bumps]):
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

    dimensions: Count = 1
    sizes: tuple[int, ...] = ()
    context: Annotated[int, Allowed(whole_number, at_least=0)] = 2
    width: Positive = 0.15
    noise: NonNegative = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sizes != ():
            Slots(self.sizes)  # Refuses what are no numbers of choices.

    @property
    def problem(self) -> Problem:
        space = Box((0.0,) * self.dimensions, (1.0,) * self.dimensions, self.sizes)
        return Problem(space, self.context, Continuous())

    def reset(self, replicas: int, rng: np.random.Generator) -> Bumps:
        choices = sum(self.sizes)
        phase = rng.uniform(-math.pi, math.pi, (replicas, self.dimensions))
        context_weight = rng.standard_normal((replicas, self.context, self.dimensions))
        choice_phase = rng.standard_normal((replicas, choices, self.dimensions))
        height = rng.uniform(LOWEST_HEIGHT, 1.0, (replicas, choices))
        best = rng.integers(self.sizes, size=(replicas, len(self.sizes)))
        np.put_along_axis(height, self._index(best), 1.0, axis=1)
        return Bumps(phase, context_weight, choice_phase, height)

    def contexts(self, world: Bumps, count: int, rng: np.random.Generator) -> Floats:
        return draw_directions(len(world.phase), count, self.context, rng)

    def best_point(self, world: Bumps, context: Floats, choice: Integers) -> Floats:
        """The best point for each choice: ``[R, n, S] -> [R, n, d]``."""
        phase = world.phase[:, None] + context @ world.context_weight
        phase += _rows_of(world.choice_phase, self._index(choice)).sum(axis=2)
        return MIDDLE + REACH * np.sin(phase)

    def mean_reward(self, world: Bumps, context: Floats, action: Actions) -> Floats:
        choice, point = np.split(action, [len(self.sizes)], axis=-1)
        choice = choice.astype(np.int64)
        distance = (point - self.best_point(world, context, choice)) / self.width
        mean: Floats = np.exp(-np.square(distance).sum(axis=-1) / 2)
        if self.sizes:
            mean *= _rows_of(world.height, self._index(choice)).mean(axis=2)
        return mean

    def best_reward(self, world: Bumps, context: Floats) -> Floats:
        """1, the top of the bump with the best choices."""
        return np.ones(context.shape[:2])

    def _index(self, choice: Integers) -> Integers:
        """The index of a choice among the C choices of all slots: ``[..., S] -> [..., S]``."""
        return choice + np.cumsum((0, *self.sizes[:-1]))


def _rows_of(table: Floats, index: Integers) -> Floats:
    """Rows of each replica's table: ``[R, C, ...]`` and ``[R, n, S] -> [R, n, S, ...]``."""
    return table[np.arange(len(table))[:, None, None], index]


INTERCEPT_RANGE = (1.0, 3.0)
"""The range of a₀, the log-odds of a sale at price 0 for an average buyer: 73 % to 95 %."""
TASTE_DEVIATION = 0.5
"""The standard deviation of each coordinate of a, and so of a·c, because contexts have length 1."""
BEST_PRICE_RANGE = (0.2, 0.8)
"""The range of the best price of an average buyer, as shares of the way from low to high: away
from the ends, so the best price is not a matter of the bounds."""


class Demand(NamedTuple):
    """The demand in every replica: ``intercept [R]`` is a₀, ``taste [R, D]`` a, ``slope [R]`` β."""

    intercept: Floats
    taste: Floats
    slope: Floats


@dataclass(frozen=True)
class Pricing(WithOutcome[Demand]):
    """The reward is the price p if there is a sale: P(sale | p, c) = σ(a₀ + a·c − β p), β > 0.

    p is any number from ``low`` to ``high``. Contexts c are uniform on the unit sphere in
    R^``context``; if ``context`` is 0, there are no contexts. In each replica a₀ is uniform in
    [1, 3], each coordinate of a is normal with standard deviation ½, and β is such that the best
    price of an average buyer, a·c = 0, is uniform in the middle three fifths of the range.

    With α = a₀ + a·c the mean reward is p σ(α − β p). Its derivative is 0 if 1 + e^(α − βp) = βp.
    With u = βp − 1 this is u eᵘ = e^(α − 1), so p* = (1 + W(e^(α − 1))) / β, where W is Lambert's
    function. The mean reward rises up to p* and falls after it, so a p* outside the range is
    moved to the nearer end.

    Reference: Aravindakshan and Ratchford (2011), Solving share equations in logit models using the
    LambertW function. W(eᶻ) is computed as Wright's ω(z), which does not overflow.
    """

    low: NonNegative = 1.0
    high: Positive = 10.0
    context: Annotated[int, Allowed(whole_number, at_least=0)] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high:
            raise InputError(
                f"low must be below high, not {self.low} and {self.high}: exchange the two, or "
                "widen the range of prices",
                parameter="low",
            )

    @property
    def problem(self) -> Problem:
        scale = Continuous(low=0.0, high=float(self.high))
        return Problem(Box((float(self.low),), (float(self.high),)), self.context, scale)

    def reset(self, replicas: int, rng: np.random.Generator) -> Demand:
        intercept = rng.uniform(*INTERCEPT_RANGE, size=replicas)
        taste = TASTE_DEVIATION * rng.standard_normal((replicas, self.context))
        share = rng.uniform(*BEST_PRICE_RANGE, size=replicas)
        best_price = self.low + share * (self.high - self.low)
        return Demand(intercept, taste, (1 + scipy.special.wrightomega(intercept - 1)) / best_price)

    def contexts(self, world: Demand, count: int, rng: np.random.Generator) -> Floats:
        return draw_directions(len(world.intercept), count, self.context, rng)

    def mean_reward(self, world: Demand, context: Floats, action: Actions) -> Floats:
        return self._means(world, context, action[..., 0])[0]

    def outcome(
        self, world: Demand, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        price = action[..., 0]
        mean, sale = self._means(world, context, price)
        return Outcome(price * (rng.random(sale.shape) < sale), mean)

    def best_price(self, world: Demand, context: Floats) -> Floats:
        """The price p* in each context: ``[R, n]``."""
        excess = scipy.special.wrightomega(_log_odds(world, context) - 1)
        price = (1 + excess) / world.slope[:, None]
        return np.clip(price, self.low, self.high)

    def best_reward(self, world: Demand, context: Floats) -> Floats:
        return self._means(world, context, self.best_price(world, context))[0]

    def _means(self, world: Demand, context: Floats, price: Floats) -> tuple[Floats, Floats]:
        """The mean reward and the probability of a sale at each price, both ``[R, n]``."""
        sale = scipy.special.expit(_log_odds(world, context) - world.slope[:, None] * price)
        return price * sale, sale


def _log_odds(world: Demand, context: Floats) -> Floats:
    """α(c) = a₀ + a·c, the log-odds of a sale at price 0: ``[R, n]``."""
    return world.intercept[:, None] + (context @ world.taste[..., None])[..., 0]


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
        return Slots((*self.space.choices, *[self.points] * self.space.reals))

    @property
    def log_volume(self) -> float:
        """The logarithm of the volume of a cell; 0 if the space has no real-valued parts."""
        return self.space.log_measure - math.log(self.listed.size)

    def of(self, action: Actions) -> Integers:
        """The cell of each action: ``[..., S] -> [..., S]``.

        Rows of weight 0 may hold values outside the space; these get an arbitrary cell.
        """
        first = len(self.space.choices)
        scaled = self.space.scaled(action).astype(np.float64)
        scaled[..., first:] *= self.points
        highest = np.array(self.listed.choices) - 1
        return np.clip(np.nan_to_num(np.floor(scaled)), 0, highest).astype(np.int64)

    def within(self, cell: Integers, rng: np.random.Generator) -> Actions:
        """Draw an action uniformly from each cell: ``[..., S] -> [..., S]``."""
        first = len(self.space.choices)
        scaled = cell.astype(np.float64)
        scaled[..., first:] += rng.random((*cell.shape[:-1], self.space.reals))
        scaled[..., first:] /= self.points
        return self.space.unscaled(scaled).astype(self.space.dtype)

    def centers(self) -> Floats:
        """The centres of all M cells, their real-valued parts scaled to 0 … 1: ``[M, S]``."""
        middle = self.listed.listing().astype(np.float64)
        first = len(self.space.choices)
        middle[..., first:] = (middle[..., first:] + 0.5) / self.points
        return middle


@serializable("gridded-state")
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
    points: Count = 10

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> GriddedState:
        space, features = problem.space, problem.action_features
        if features:
            features = (*features, *[()] * space.reals)
        cells = Cells(space, self.points).listed
        inner = replace(problem, space=cells, action_features=features)
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
        cells, log_prob = self._cells(state), feedback.log_prob
        if log_prob is not None:
            log_prob = log_prob + cells.log_volume
        of_cells = feedback._replace(action=cells.of(feedback.action), log_prob=log_prob)
        return state._replace(inner=self.policy.update(state.inner, of_cells, rng))

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


@serializable("fourier-statistics")
class FourierStatistics(NamedTuple):
    """The weighted sums ``products [R, F + 2, F + 2]``, Σ z zᵀ with z = (φ, r, 1).

    φ are the F features of an observation and r is its reward, relative to ``origin [R]``, the mean
    of the first rewards, which avoids cancellation in the variance.
    """

    products: Floats
    origin: Floats

    @classmethod
    def empty(cls, replicas: int, features: int) -> Self:
        return cls(np.zeros((replicas, features + 2, features + 2)), np.zeros(replicas))

    def add(self, features: Floats, reward: Floats, weight: Floats) -> Self:
        """Add observations: ``features [R, n, F]``, ``reward [R, n]`` and ``weight [R, n]``."""
        total = weight.sum(axis=1)
        mean = (weight * reward).sum(axis=1) / np.where(total > 0, total, 1.0)
        origin = np.where(self.products[:, -1, -1] > 0, self.origin, mean)
        relative = (reward - origin[:, None])[..., None]
        rows = np.concatenate([features, relative, np.ones_like(relative)], axis=-1)
        weighted = rows * weight[..., None]
        return type(self)(self.products + weighted.swapaxes(1, 2) @ rows, origin)

    def draws(self, count: int, scale: float, ridge: float, rng: np.random.Generator) -> Floats:
        """Draw coefficients from the posterior, for standardized rewards: ``[R, count, F]``.

        N(θ̂, scale² A⁻¹) with A = ridge I + Σ φ φᵀ and θ̂ = A⁻¹ Σ φ (r − r̄) / s, where r̄ and s are
        the mean and the standard deviation of the rewards so far.
        """
        size = self.products.shape[1] - 2
        of_features, of_reward, of_one = np.split(self.products, [size, size + 1], axis=1)
        total = np.maximum(of_one[:, 0, -1], 1.0)
        mean = of_one[:, 0, size] / total
        variance = np.maximum(of_reward[:, 0, size] / total - mean**2, 0.0)
        deviation = np.where(variance > 0, np.sqrt(variance), 1.0)
        response = of_reward[:, 0, :size] - mean[:, None] * of_one[:, 0, :size]
        response = response / deviation[:, None]
        root = np.linalg.cholesky(of_features[..., :size] + ridge * np.eye(size))
        # A = L Lᵀ, so Lᵀ⁻¹ (L⁻¹ b + scale ξ) has mean A⁻¹ b and covariance scale² A⁻¹.
        noise = scale * rng.standard_normal((len(root), size, count))
        half = np.linalg.solve(root, response[..., None]) + noise
        return np.linalg.solve(root.swapaxes(1, 2), half).swapaxes(1, 2)


MOST_CELLS = 2**14
"""The most cells of a grid; a decision evaluates a function in all of them."""
VALUES_AT_ONCE = 2**22
"""About how many numbers an intermediate array holds, 32 MB; more rows are processed in parts."""


@serializable("fourier-state")
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
    update ``draws`` functions are drawn, and each decision uses one of them at random, so
    π(x | c) is the share of functions that are highest in the cell of x, over the cell's volume.

    Reference: Rahimi and Recht (2007); Chowdhury and Gopalan (2017).
    """

    points: Count = 20
    length: Positive = 0.2
    context_length: Positive = 1.0
    features: Count = 64
    draws: Count = 64
    scale: Positive = 1.0
    ridge: Positive = 1.0

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
        highest = by_rows(
            lambda part, drawn: self._highest(state, table, part, state.draws[replica, drawn]),
            max(1, VALUES_AT_ONCE // table.size),
            context,
            member,
        )
        return ChosenActions(cells.within(cells.listed.action(highest), rng), None)

    def log_prob(self, state: FourierState, context: Floats, action: Actions) -> Floats:
        state.problem.check_context(context)
        state.problem.check_action(action)
        cells = Cells(state.problem.space, self.points)
        index = cells.listed.index(cells.of(action))
        table = self._table(state, cells)

        def share(part: Floats, index: Integers) -> Floats:
            """The share of all drawn functions that are highest at the cells ``index [R, n]``."""
            drawn = np.tile(state.draws, (1, part.shape[1], 1))
            each = np.repeat(part, self.draws, axis=1)
            highest = self._highest(state, table, each, drawn).reshape(*index.shape, self.draws)
            return (highest == index[..., None]).mean(axis=-1)

        rows = max(1, VALUES_AT_ONCE // (table.size * self.draws))
        found = by_rows(share, rows, context, index)
        with np.errstate(divide="ignore"):
            return np.log(found) - cells.log_volume

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
        return (parts @ table.swapaxes(1, 2)).argmax(axis=-1)


def _inputs(scaled: Actions, sizes: tuple[int, ...]) -> Floats:
    """The inputs of a scaled action: one-hot choices, then real parts: ``[..., S] -> [..., A]``."""
    slots = [
        (scaled[..., slot, None] == np.arange(size)).astype(np.float64)
        for slot, size in enumerate(sizes)
    ]
    return np.concatenate([*slots, scaled[..., len(sizes) :]], axis=-1)
