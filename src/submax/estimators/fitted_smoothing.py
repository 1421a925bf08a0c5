"""Smoothing constants of the reward levels, fitted to the counts by empirical Bayes."""

import numpy as np
import scipy

from submax.core.arrays import Booleans, Floats
from submax.core.numerics.decreasing_root import decreasing_root

SWEEPS = 200
"""At most this many rounds over the levels, if more than one constant is fitted."""
CLOSE = 1e-3
"""A search for one constant ends when a step changes its logarithm by less than this."""
SETTLED = 1e-6
"""Rounds end when no logarithm of a constant changes by more than this."""
NEARBY = 1e-4
"""Step of the finite difference that gives the second derivative of the likelihood."""
FURTHEST = 12.0
"""Bound of the absolute value of the logarithm of a constant."""
WIDTH = 3.0
"""Standard deviation of the normal prior of the logarithm, whose mean is 0."""


def fitted_smoothing(counts: Floats, start: Floats | None = None) -> Floats:
    """Return the smoothing constant c_l of every level: ``[R, L, A] -> [R, L]``.

    Adding c_l to the counts of level l amounts to a Dirichlet prior with parameters c for the level
    probabilities of an arm; c maximizes the likelihood of the counts of all arms (empirical Bayes).
    The constant of the level that is rarest, on average over arms, is not fitted but 1, as in
    add-one smoothing. With two levels and rare rewards this is a Beta(1, β) prior of an arm's value
    with a fitted β. A weak normal prior of the logarithms keeps the constants finite if the counts
    say little.

    The likelihood does not depend on how arms were chosen, so good arms may have been pulled more.
    The search begins at ``start [R, L]``, for example the constants of the previous fit.

    >>> rng = np.random.default_rng(0)
    >>> rewards = rng.binomial(50, rng.beta(1, 9, size=(1, 2000)))
    >>> fitted_smoothing(np.stack([50.0 - rewards, rewards], axis=1)).round().tolist()
    [[9.0, 1.0]]

    Reference: Minka (2000), on fitting a Dirichlet-multinomial distribution.
    """
    levels = counts.shape[1]
    pulls = counts.sum(axis=1)
    share = (counts / np.where(pulls > 0, pulls, 1.0)[:, None]).sum(axis=-1)
    # Among equally rare levels the last is the rarest; only levels that were observed compete.
    few = np.count_nonzero(share, axis=-1, keepdims=True) < 2
    rare = np.where((share > 0) | few, share, np.inf)
    rarest = levels - 1 - rare[:, ::-1].argmin(axis=-1)
    free = np.arange(levels) != rarest[:, None]
    if start is None:
        # Start from the shares of the levels, with half an arm added to avoid extremes.
        start = (share + 0.5) / (share.min(axis=-1, keepdims=True) + 0.5)
    smoothing = np.where(free, np.clip(start, np.exp(-FURTHEST), np.exp(FURTHEST)), 1.0)
    if levels == 2:
        # Only one of two constants is free.
        alone = counts[np.arange(len(counts)), 1 - rarest, None]
        fitted = _scaled(alone, pulls, smoothing[free][:, None], np.ones((len(free), 1), bool), 1.0)
        return np.where(free, fitted, 1.0)
    for _ in range(SWEEPS):
        before = smoothing
        for level in range(levels):
            smoothing = _scaled(counts, pulls, smoothing, free & (np.arange(levels) == level), 0.0)
        # If all constants have to grow, one at a time is slow: scale them together as well.
        smoothing = _scaled(counts, pulls, smoothing, free, 0.0)
        # A replica stops by itself, so that its result does not depend on other replicas.
        settled = np.abs(np.log(smoothing / before)).max(axis=-1, keepdims=True) < SETTLED
        smoothing = np.where(settled, before, smoothing)
        if settled.all():
            break
    return smoothing


def _scaled(
    counts: Floats, pulls: Floats, smoothing: Floats, group: Booleans, rest: float
) -> Floats:
    """Multiply the constants of a ``group [R, L]`` by the factor with the highest likelihood.

    ``rest`` is the sum of constants that are not in the arrays.
    """
    digamma = scipy.special.digamma
    logarithm = np.log(smoothing)
    lowest = -FURTHEST - np.where(group, logarithm, FURTHEST).min(axis=-1)
    highest = FURTHEST - np.where(group, logarithm, -FURTHEST).max(axis=-1)
    arms = counts.shape[-1]

    def slopes(place: Floats) -> Floats:
        """Return the derivative of the log-posterior by the logarithm of the factor."""
        constant = np.where(group, smoothing * np.exp(place)[..., None], smoothing)
        total = constant.sum(axis=-1) + rest
        of_all = digamma(pulls + total[..., None]).sum(axis=-1) - arms * digamma(total)
        of_level = digamma(counts + constant[..., None]).sum(axis=-1) - arms * digamma(constant)
        slope = constant * (of_level - of_all[..., None]) - np.log(constant) / WIDTH**2
        result: Floats = np.where(group, slope, 0.0).sum(axis=-1)
        return result

    def slope_and_bend(place: Floats) -> tuple[Floats, Floats]:
        here, nearby = slopes(np.array([place, place + NEARBY]))
        return here, (nearby - here) / NEARBY

    place = decreasing_root(slope_and_bend, np.zeros(len(counts)), lowest, highest, CLOSE)
    scaled: Floats = np.where(group, smoothing * np.exp(place)[:, None], smoothing)
    return scaled
