"""Levels and bin edges at weighted quantiles of the observed rewards."""

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.checks import probability, whole_number
from submax.core.errors import InputError
from submax.core.rewards.reward_encoding import RewardEncoding

MOST_QUANTILES = 64
"""Largest number of levels, and of bin edges: the cost of a decision grows with both."""


def check_quantiles(shares: tuple[float, float], levels: object, bin_edges: object) -> None:
    """Raise an ``InputError`` unless these are valid parameters of a `QuantileScale`."""
    if not isinstance(shares, tuple) or len(shares) != 2:
        raise InputError(
            f"quantiles must be a tuple of two probabilities, low and high, not {shares}",
            parameter="quantiles",
        )
    for share in shares:
        probability("each of quantiles", share)
    if not shares[0] < shares[1]:
        raise InputError(
            f"quantiles must rise from low to high, not {shares}", parameter="quantiles"
        )
    whole_number("asked", levels, at_least=2, at_most=MOST_QUANTILES)
    whole_number("bin_edges", bin_edges, at_least=2, at_most=MOST_QUANTILES)


def quantile_encoding(
    reward: Floats, weight: Floats, shares: tuple[float, float], levels: int, bin_edges: int
) -> RewardEncoding:
    """Return levels at quantiles of all rewards, bin edges at quantiles of the distinct rewards.

    The probabilities of the levels are evenly spaced between the two ``shares``, those of the bin
    edges between 0 and 1. If the lowest and the highest level are equal, as with rewards that are
    mostly 0, then this value is one level, and the other levels are quantiles of the rewards above
    it, or of those below it if there are none above. So all levels are equal only if all rewards
    are.
    """
    order = np.argsort(np.where(weight > 0, reward, np.inf), axis=1, kind="stable")
    weight = np.take_along_axis(weight, order, axis=1)
    reward = np.where(weight > 0, np.take_along_axis(reward, order, axis=1), 0.0)
    probabilities = np.linspace(*shares, levels)
    chosen = quantiles(reward, weight, probabilities)
    tied = chosen[:, :1] == chosen[:, -1:]
    if tied.any():
        chosen = np.where(tied, _around_mode(reward, weight, chosen[:, :1], probabilities), chosen)
    first = np.diff(reward, axis=1, prepend=np.nan) != 0
    edges = quantiles(reward, first * (weight > 0), np.linspace(0, 1, bin_edges))
    return RewardEncoding(_padded(chosen), _padded(edges))


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
    found = np.take_along_axis(reward, np.minimum(index, reward.shape[1] - 1), axis=1)
    return np.where(total > 0, found, 0.0)


def _around_mode(reward: Floats, weight: Floats, value: Floats, shares: Floats) -> Floats:
    """The most frequent reward, with quantiles of the rewards above it, or else below it."""
    higher, lower = weight * (reward > value), weight * (reward < value)
    above = np.concatenate([value, quantiles(reward, higher, shares[1:])], axis=1)
    below = np.concatenate([quantiles(reward, lower, shares[:-1]), value], axis=1)
    same = np.repeat(value, len(shares), axis=1)
    return np.where(_has_weight(higher), above, np.where(_has_weight(lower), below, same))


def _has_weight(weight: Floats) -> Booleans:
    found: Booleans = weight.max(axis=1, keepdims=True, initial=0) > 0
    return found


def _padded(rising: Floats) -> Floats:
    """Replace repeated values by the lowest one, and sort: ``[R, Q] -> [R, Q]``."""
    again = np.diff(rising, axis=1, prepend=-np.inf) == 0
    return np.sort(np.where(again, rising[:, :1], rising), axis=1)
