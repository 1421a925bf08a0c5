"""Reward scales: which rewards are possible, and the levels on which a policy is conditioned."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, Self, cast

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import Allowed, Checked, Finite, finite, whole_number
from submax.core.errors import InputError
from submax.core.serialization import serializable


@serializable("reward-encoding")
class RewardEncoding(NamedTuple):
    """Two ways to encode a reward: as the nearest of a few levels, or between bin edges.

    ``levels [R, L]`` are the rewards that policies are conditioned on; ``bin_edges [R, E]`` are the
    rewards between which networks interpolate. Both are sorted; if there are fewer distinct values,
    the lowest one is repeated. `nearest` then returns its first index; `encoded` uses its last (the
    last but one if all bin edges are equal).
    """

    levels: Floats
    bin_edges: Floats

    @classmethod
    def fixed(cls, levels: tuple[float, ...], replicas: int) -> Self:
        """Return an encoding whose levels and bin edges are the same in every replica."""
        same = np.broadcast_to(np.array(levels, dtype=np.float64), (replicas, len(levels)))
        return cls(same, same)

    def nearest(self, reward: Floats) -> Integers:
        """Return the index of the nearest level, ``[R, n]``; of two equally near, the lower one."""
        lower, upper = self.levels[:, :-1], self.levels[:, 1:]
        borders = np.where(upper > lower, lower + (upper - lower) / 2, np.inf)
        # Equal levels share the border above the last of them.
        borders = np.minimum.accumulate(borders[:, ::-1], axis=1)[:, ::-1]
        index = np.zeros(reward.shape, dtype=np.int64)
        for border in borders.T:
            index += reward > border[:, None]
        return index

    def encoded(self, reward: Floats) -> Floats:
        """Encode rewards for a network: ``[R, n] -> [R, n, E]``.

        At the share t of the distance between two bin edges, their entries are 1 − t and t, and all
        others 0. A reward below the first or above the last edge counts as this edge.
        """
        replicas, rows = reward.shape
        reward = np.maximum(reward, self.bin_edges[:, :1])
        inner = self.bin_edges[:, 1:-1]
        before = (reward[..., None] >= inner[:, None]).sum(axis=-1)
        low = np.take_along_axis(self.bin_edges, before, axis=1)
        gap = np.take_along_axis(self.bin_edges, before + 1, axis=1) - low
        share = np.where(gap > 0, (reward - low) / np.where(gap > 0, gap, 1.0), 0.0)
        share = np.clip(share, 0.0, 1.0)
        encoded = np.zeros((replicas, rows, self.bin_edges.shape[1]))
        np.put_along_axis(encoded, before[..., None], 1 - share[..., None], axis=2)
        np.put_along_axis(encoded, before[..., None] + 1, share[..., None], axis=2)
        return encoded


class Scale(Checked, ABC):
    """The set of possible rewards, and the levels: the rewards that a policy is conditioned on."""

    @property
    @abstractmethod
    def levels(self) -> int:
        """Number of levels (L)."""

    @property
    def width(self) -> int:
        """Number of bin edges, the length of a reward's encoding for networks (E)."""
        return self.levels

    @property
    def moves(self) -> bool:
        """Whether the levels depend on the observed rewards, and so change with new data."""
        return False

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float] | None:
        """The lowest and the highest possible reward; None if one of them is unknown."""

    @abstractmethod
    def contains(self, reward: Floats) -> Booleans:
        """Return for each reward whether it is possible."""

    @abstractmethod
    def reward_encoding(self, reward: Floats, weight: Floats) -> RewardEncoding:
        """Return levels and bin edges for observed rewards and their weights, both ``[R, N]``.

        A reward with weight 0 was not observed.
        """

    @abstractmethod
    def with_levels(self, levels: int) -> "Scale":
        """Return this scale with ``levels`` levels, or fewer if there are fewer rewards."""

    def check(self, reward: Floats) -> None:
        """Raise an ``InputError`` if a reward is not possible."""
        fits = self.contains(reward)
        if not fits.all():
            impossible = np.asarray(reward)[~fits].flat[0]
            raise InputError(
                f"a reward on the scale {self} cannot be {impossible:.12g}", parameter="reward"
            )

    def known_bounds(self, who: str) -> tuple[float, float]:
        """Return the bounds, or raise an ``InputError`` that says ``who`` needs them."""
        if self.bounds is None:
            raise InputError(
                f"{who} needs the lowest and the highest reward, but {self} does not define them: "
                "use a scale with both, such as Continuous(low=0.0, high=1.0)"
            )
        return self.bounds


@serializable("binary")
@dataclass(frozen=True)
class Binary(Scale):
    """A reward is 0 or 1; both are levels.

    Reference: Xu et al. (2024), section 3.1.
    """

    levels = 2

    bounds = 0.0, 1.0

    def contains(self, reward: Floats) -> Booleans:
        return (reward == 0) | (reward == 1)

    def reward_encoding(self, reward: Floats, weight: Floats) -> RewardEncoding:
        return RewardEncoding.fixed((0.0, 1.0), len(reward))

    def with_levels(self, levels: int) -> Self:
        return self


@serializable("discrete")
@dataclass(frozen=True)
class Discrete(Scale):
    """A reward is one of ``values``, sorted from the lowest to the highest.

    By default every value is a level. ``asked`` limits the number of levels: they are then spread
    evenly over the list, from the first to the last value, and every other value counts as its
    nearest level. Strategies with two levels use the lowest and the highest level.

    >>> nothing = np.zeros((1, 0))
    >>> Discrete((1.0, 2.0, 3.0, 4.0, 5.0), asked=3).reward_encoding(nothing, nothing).levels
    array([[1., 3., 5.]])

    Reference: Xu et al. (2024), section 3.1.1.
    """

    values: tuple[float, ...]
    asked: int | None = None

    def __post_init__(self) -> None:
        for value in self.values if isinstance(self.values, tuple) else ():
            finite("each of values", value)
        several = isinstance(self.values, tuple) and len(self.values) >= 2
        if not several or np.any(np.diff(self.values) <= 0):
            raise InputError(
                "values must be a tuple of two rewards or more, from the lowest to the highest, "
                f"not {self.values!r}",
                parameter="values",
            )
        if self.asked is not None:
            whole_number("asked", self.asked, at_least=2, at_most=len(self.values))

    @property
    def levels(self) -> int:
        return self.asked or len(self.values)

    @property
    def bounds(self) -> tuple[float, float]:
        return self.values[0], self.values[-1]

    def contains(self, reward: Floats) -> Booleans:
        return np.isin(reward, self.values)

    def reward_encoding(self, reward: Floats, weight: Floats) -> RewardEncoding:
        places = np.linspace(0, len(self.values) - 1, self.levels).round().astype(int)
        return RewardEncoding.fixed(tuple(self.values[index] for index in places), len(reward))

    def with_levels(self, levels: int) -> Self:
        return replace(self, asked=min(levels, len(self.values)))


MOST_QUANTILES = 64
"""Largest number of levels, and of bin edges: the cost of a decision grows with both."""
QuantileCount = Annotated[int, Allowed(whole_number, at_least=2, at_most=MOST_QUANTILES)]


def quantiles(reward: Floats, weight: Floats, shares: Floats) -> Floats:
    """Return weighted quantiles of sorted rewards: ``[R, N] -> [R, Q]``.

    The quantile of a share is the lowest reward such that the rewards up to it have at least this
    share of the weight. It is 0 if the replica has no weight.

    >>> quantiles(np.array([[1.0, 2.0, 5.0]]), np.array([[1.0, 2.0, 1.0]]), np.array([0.5, 1.0]))
    array([[2., 5.]])
    """
    if reward.shape[1] == 0:
        return np.zeros((len(reward), len(shares)))
    cumulated = np.cumsum(weight, axis=1)
    total = cumulated[:, -1:]
    # The quantile of share 0 is the first reward with weight, hence the lower limit. The factor
    # keeps rounding of the sums from skipping a reward.
    wanted = np.maximum(shares * total * (1 - 1e-12), np.finfo(np.float64).tiny)
    index = np.stack([(cumulated < one[:, None]).sum(axis=1) for one in wanted.T], axis=1)
    result = np.take_along_axis(reward, np.minimum(index, reward.shape[1] - 1), axis=1)
    return np.where(total > 0, result, 0.0)


def _padded(rising: Floats) -> Floats:
    """Replace repeated values by the lowest one, and sort: ``[R, Q] -> [R, Q]``."""
    again = np.diff(rising, axis=1, prepend=-np.inf) == 0
    return np.sort(np.where(again, rising[:, :1], rising), axis=1)


class QuantileScale(Scale):
    """Levels at quantiles of the observed rewards.

    ``quantiles`` are the probabilities q₀ and q₁ of the lowest and the highest level, and ``asked``
    the number of levels, evenly spaced from q₀ to q₁. ``bin_edges`` is the number of quantiles of
    the distinct rewards by which a reward is encoded for a network.
    """

    quantiles: tuple[float, float]
    asked: QuantileCount
    bin_edges: QuantileCount

    def __post_init__(self) -> None:
        shares = self.quantiles
        pair = isinstance(shares, tuple) and len(shares) == 2
        if not (pair and 0 <= shares[0] < shares[1] <= 1):
            raise InputError(
                f"quantiles must be a tuple of two increasing probabilities, not {shares}",
                parameter="quantiles",
            )
        super().__post_init__()

    @property
    def levels(self) -> int:
        return self.asked

    @property
    def width(self) -> int:
        return self.bin_edges

    moves = True

    def reward_encoding(self, reward: Floats, weight: Floats) -> RewardEncoding:
        """Return levels at quantiles of all rewards, bin edges at those of the distinct rewards.

        If the lowest and the highest level are equal, as with rewards that are mostly 0, this value
        is one level, and the others are quantiles of the rewards above it, else of those below it.
        """
        order = np.argsort(np.where(weight > 0, reward, np.inf), axis=1, kind="stable")
        weight = np.take_along_axis(weight, order, axis=1)
        reward = np.where(weight > 0, np.take_along_axis(reward, order, axis=1), 0.0)
        shares = np.linspace(*self.quantiles, self.asked)
        chosen = quantiles(reward, weight, shares)
        mode = chosen[:, :1]
        tied = mode == chosen[:, -1:]
        if tied.any():
            higher, lower = weight * (reward > mode), weight * (reward < mode)
            above = np.concatenate([mode, quantiles(reward, higher, shares[1:])], axis=1)
            below = np.concatenate([quantiles(reward, lower, shares[:-1]), mode], axis=1)
            chosen = np.where(tied & lower.any(axis=1, keepdims=True), below, chosen)
            chosen = np.where(tied & higher.any(axis=1, keepdims=True), above, chosen)
        first = np.diff(reward, axis=1, prepend=np.nan) != 0
        edges = quantiles(reward, first * (weight > 0), np.linspace(0, 1, self.bin_edges))
        return RewardEncoding(_padded(chosen), _padded(edges))

    def with_levels(self, levels: int) -> Self:
        return cast(Self, replace(cast(Any, self), asked=levels))


@serializable("continuous")
@dataclass(frozen=True)
class Continuous(QuantileScale):
    """A reward is a number, between ``low`` and ``high`` if they are given.

    The levels are quantiles of the observed rewards and move as data arrive; `QuantileScale`
    explains ``quantiles``, ``asked`` and ``bin_edges``.

    Reference: Xu et al. (2024), section 3.1.1; Kumar et al. (2019).
    """

    low: Finite | None = None
    high: Finite | None = None
    quantiles: tuple[float, float] = (0.1, 0.9)
    asked: int = 2
    bin_edges: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise InputError(
                f"low must be below high, not {self.low} and {self.high}", parameter="low"
            )

    @property
    def bounds(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)

    def contains(self, reward: Floats) -> Booleans:
        low = -np.inf if self.low is None else self.low
        high = np.inf if self.high is None else self.high
        return np.isfinite(reward) & (reward >= low) & (reward <= high)


@serializable("counts")
@dataclass(frozen=True)
class Counts(QuantileScale):
    """A reward is a whole number, 0 or more, without an upper bound: clicks, units, minutes.

    The levels are quantiles of the observed counts, as in `Continuous`; every level is therefore a
    count, too.

    Reference: Xu et al. (2024), section 3.1.1.
    """

    quantiles: tuple[float, float] = (0.1, 0.9)
    asked: int = 2
    bin_edges: int = 5

    bounds = None

    def contains(self, reward: Floats) -> Booleans:
        return np.isfinite(reward) & (reward >= 0) & (reward == np.floor(reward))
