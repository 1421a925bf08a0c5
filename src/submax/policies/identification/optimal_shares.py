"""The shares of pulls with which the best of several Bernoulli arms is identified soonest."""

import numpy as np

from submax.core.arrays import Floats
from submax.policies.classic.bernoulli_divergence import divergence

HALVINGS = 25
"""Bisections for the common level of evidence, to a relative error of 3e-8."""
NEWTON_STEPS = 4
"""Newton steps for the shares at each level; each search starts from the last one."""
EDGE = 1e-6
"""Means are kept this far from 0 and 1, and the best this far above the others."""


def optimal_shares(mean: Floats) -> Floats:
    """Return w* = argmax_w min_{a ≠ 1} (w_1 + w_a) I(μ_1, μ_a), where arm 1 is the best.

    ``[R, A] -> [R, A]``. With x_a = w_a / w_1, g_a(x) = kl(μ_1, m) + x kl(μ_a, m) and
    m = (μ_1 + x μ_a) / (1 + x), all g_a(x_a) equal one level y, and y solves
    Σ_a kl(μ_1, m_a) / kl(μ_a, m_a) = 1. g_a is concave with the slope kl(μ_a, m), so that Newton's
    method finds x_a.

    Reference: Garivier and Kaufmann (2016), Optimal best arm identification with fixed confidence,
    theorem 5 and lemma 4.

    >>> optimal_shares(np.array([[0.5, 0.45]])).round(2).tolist()
    [[0.5, 0.5]]
    """
    size = mean.shape[1]
    if size == 1:
        return np.ones_like(mean)
    mean = np.clip(mean, 2 * EDGE, 1 - 2 * EDGE)
    best = mean.max(axis=1, keepdims=True)
    first = mean.argmax(axis=1)
    others = np.arange(size) != first[:, None]
    lower = np.where(others, np.minimum(mean, best - EDGE), best / 2)
    low = np.zeros_like(best)
    high = np.where(others, divergence(best, lower), np.inf).min(axis=1, keepdims=True)
    ratio = np.ones_like(mean)
    for _ in range(HALVINGS):
        level = (low + high) / 2
        ratio = _ratios(best, lower, level, ratio)
        middle = (best + ratio * lower) / (1 + ratio)
        away = divergence(best, middle) / np.maximum(divergence(lower, middle), 1e-300)
        above = np.where(others, away, 0.0).sum(axis=1, keepdims=True) > 1
        low, high = np.where(above, low, level), np.where(above, level, high)
    shares = np.where(others, ratio, 1.0)
    result: Floats = shares / shares.sum(axis=1, keepdims=True)
    return result


def _ratios(best: Floats, lower: Floats, level: Floats, start: Floats) -> Floats:
    """Return x with g(x) = level, by Newton's method for the concave function g."""
    ratio = start
    for _ in range(NEWTON_STEPS):
        middle = (best + ratio * lower) / (1 + ratio)
        slope = divergence(lower, middle)
        value = divergence(best, middle) + ratio * slope
        ratio = ratio + (level - value) / np.maximum(slope, 1e-300)
        ratio = np.clip(ratio, 0.0, 1e9)
    return ratio
