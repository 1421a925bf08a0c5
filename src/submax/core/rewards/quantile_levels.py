"""Levels at the quantiles of what was observed."""

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.checks import probability, whole_number
from submax.core.errors import InputError
from submax.core.rewards.ruler import Ruler

MOST = 64
"""Levels and knots; each makes every decision dearer."""


def check_quantiles(shares: tuple[float, float], levels: object, knots: object) -> None:
    """Refuse what cannot be the parameters of levels at quantiles."""
    if not isinstance(shares, tuple) or len(shares) != 2:
        raise InputError(f"quantiles must be two shares, low and high, not {shares}")
    for share in shares:
        probability("each of quantiles", share)
    if not shares[0] < shares[1]:
        raise InputError(f"quantiles must rise from low to high, not {shares}")
    whole_number("asked", levels, at_least=2, at_most=MOST)
    whole_number("knots", knots, at_least=2, at_most=MOST)


def quantile_ruler(
    reward: Floats, weight: Floats, shares: tuple[float, float], levels: int, knots: int
) -> Ruler:
    """Levels between two quantiles of the rewards, knots over all of the different ones.

    Where both quantiles are one value, as with rewards that are mostly 0, that value is one level
    and the others are quantiles of the rewards above it, or below it where there is none above.
    All levels agree only where all rewards do.
    """
    order = np.argsort(np.where(weight > 0, reward, np.inf), axis=1, kind="stable")
    weight = np.take_along_axis(weight, order, axis=1)
    reward = np.where(weight > 0, np.take_along_axis(reward, order, axis=1), 0.0)
    places = np.linspace(*shares, levels)
    asked = quantiles(reward, weight, places)
    tied = asked[:, :1] == asked[:, -1:]
    if tied.any():
        asked = np.where(tied, _beside(reward, weight, asked[:, :1], places), asked)
    first = np.diff(reward, axis=1, prepend=np.nan) != 0
    different = quantiles(reward, first * (weight > 0), np.linspace(0, 1, knots))
    return Ruler(_padded(asked), _padded(different))


def quantiles(reward: Floats, weight: Floats, shares: Floats) -> Floats:
    """The first reward up to which each share of the weight lies: ``[R, N]`` sorted ``-> [R, Q]``.

    0 where there is no weight.

    >>> quantiles(np.array([[1.0, 2.0, 5.0]]), np.array([[1.0, 2.0, 1.0]]), np.array([0.5, 1.0]))
    array([[2., 5.]])
    """
    if reward.shape[1] == 0:
        return np.zeros((len(reward), len(shares)))
    cumulated = np.cumsum(weight, axis=1)
    total = cumulated[:, -1:]
    # A share of nothing is the first reward that has weight; rounding must not pass one by.
    wanted = np.maximum(shares * total * (1 - 1e-12), np.finfo(np.float64).tiny)
    place = np.stack([(cumulated < one[:, None]).sum(axis=1) for one in wanted.T], axis=1)
    found = np.take_along_axis(reward, np.minimum(place, reward.shape[1] - 1), axis=1)
    return np.where(total > 0, found, 0.0)


def _beside(reward: Floats, weight: Floats, value: Floats, shares: Floats) -> Floats:
    """A value that most rewards have, and quantiles of those above it, or else of those below."""
    higher, lower = weight * (reward > value), weight * (reward < value)
    above = np.concatenate([value, quantiles(reward, higher, shares[1:])], axis=1)
    below = np.concatenate([quantiles(reward, lower, shares[:-1]), value], axis=1)
    same = np.repeat(value, len(shares), axis=1)
    return np.where(_any(higher), above, np.where(_any(lower), below, same))


def _any(weight: Floats) -> Booleans:
    found: Booleans = weight.max(axis=1, keepdims=True, initial=0) > 0
    return found


def _padded(rising: Floats) -> Floats:
    """Each value once, and the lowest in the places that are left."""
    again = np.diff(rising, axis=1, prepend=-np.inf) == 0
    return np.sort(np.where(again, rising[:, :1], rising), axis=1)
