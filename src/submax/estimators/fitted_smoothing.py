"""How much to add to the counts of each level, read from the counts themselves."""

import numpy as np
from scipy.special import digamma

from submax.core.arrays import Booleans, Floats
from submax.core.numerics.falling_root import falling_root

SWEEPS = 200
"""Rounds over the levels where more than one is fitted, at most."""
CLOSE = 1e-3
"""The last step of a search, in the logarithm."""
SETTLED = 1e-6
"""What no round over the levels moves further, in the logarithm."""
NEARBY = 1e-4
"""Between the two slopes that say how the likelihood bends."""
FURTHEST = 12.0
"""How far from 0 the logarithm may be."""
WIDTH = 3.0
"""Before the data, the logarithm is normal around 0 with this standard deviation."""


def fitted_smoothing(counts: Floats, start: Floats | None = None) -> Floats:
    """The smoothing constant c_l of every level: ``[R, L, A] -> [R, L]``.

    With c_l added to the counts of level l, the levels of an arm are a draw from the Dirichlet
    distribution with parameters c; here c is what makes the counts of all arms most likely
    (empirical Bayes). One thing is not fitted: the rarest level, on average over arms, gets 1, as
    in add-one smoothing. With two levels and rare rewards that is a Beta(1, β) prior of an arm's
    value, and β is fitted. A weak pull towards 1 settles what the counts leave open.

    How arms were chosen does not matter to the likelihood: good arms may have been pulled more.
    The search begins at ``start [R, L]``, such as the constants of fewer counts.

    >>> rng = np.random.default_rng(0)
    >>> rewards = rng.binomial(50, rng.beta(1, 9, size=(1, 2000)))
    >>> fitted_smoothing(np.stack([50.0 - rewards, rewards], axis=1)).round().tolist()
    [[9.0, 1.0]]

    Reference: Minka (2000), on fitting a Dirichlet-multinomial distribution.
    """
    levels = counts.shape[1]
    pulls = counts.sum(axis=1)
    share = (counts / np.where(pulls > 0, pulls, 1.0)[:, None]).sum(axis=-1)
    # Of equally rare levels the last stays at one; of many, one that was seen.
    few = np.count_nonzero(share, axis=-1, keepdims=True) < 2
    rare = np.where((share > 0) | few, share, np.inf)
    rarest = levels - 1 - rare[:, ::-1].argmin(axis=-1)
    free = np.arange(levels) != rarest[:, None]
    if start is None:
        # The shares are a good guess; half an arm more of each level keeps it within reason.
        start = (share + 0.5) / (share.min(axis=-1, keepdims=True) + 0.5)
    smoothing = np.where(free, np.clip(start, np.exp(-FURTHEST), np.exp(FURTHEST)), 1.0)
    if levels == 2:
        # One of them is free, and the other need not be looked at.
        alone = counts[np.arange(len(counts)), 1 - rarest, None]
        fitted = _scaled(alone, pulls, smoothing[free][:, None], np.ones((len(free), 1), bool), 1.0)
        return np.where(free, fitted, 1.0)
    for _ in range(SWEEPS):
        before = smoothing
        for level in range(levels):
            smoothing = _scaled(counts, pulls, smoothing, free & (np.arange(levels) == level), 0.0)
        # One at a time, constants that should all be larger hold each other back.
        smoothing = _scaled(counts, pulls, smoothing, free, 0.0)
        # Each replica by itself: what another one needs must not reach it.
        settled = np.abs(np.log(smoothing / before)).max(axis=-1, keepdims=True) < SETTLED
        smoothing = np.where(settled, before, smoothing)
        if settled.all():
            break
    return smoothing


def _scaled(
    counts: Floats, pulls: Floats, smoothing: Floats, group: Booleans, rest: float
) -> Floats:
    """The constants with those of a ``group [R, L]`` times the factor that is most likely.

    ``rest`` is the sum of constants that are not among these.
    """
    logarithm = np.log(smoothing)
    lowest = -FURTHEST - np.where(group, logarithm, FURTHEST).min(axis=-1)
    highest = FURTHEST - np.where(group, logarithm, -FURTHEST).max(axis=-1)
    arms = counts.shape[-1]

    def slopes(place: Floats) -> Floats:
        """The derivative of the log-likelihood by the logarithm of the factor, with the pull."""
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

    place = falling_root(slope_and_bend, np.zeros(len(counts)), lowest, highest, CLOSE)
    scaled: Floats = np.where(group, smoothing * np.exp(place)[:, None], smoothing)
    return scaled
