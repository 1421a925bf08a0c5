"""How far a sum of noise may stray, at all times together."""

import math
from typing import Any

import numpy as np
import scipy


def mixture_boundary(variance: float, error: float, scale: float, tightest_at: float) -> float:
    """Return u such that |S| < u(V) at all times together, but for a chance of ``error``.

    S is a sum of increments x with conditional mean 0 and |x| ≤ ``scale``, and ``variance`` is
    V = Σ x². The boundary is narrowest, relative to √V, about where V is ``tightest_at``. With a
    ``scale`` of 0 increments may have any size; then the boundary holds for large samples only.

    Each direction has half of the error. The boundary is where a mixture over λ of the
    supermartingales exp(λ S − ψ(λ) V) reaches 2 / ``error``: the gamma-exponential mixture for
    ψ(λ) = (−log(1 − cλ) − cλ) / c², where c is the scale. For c = 0 it is the normal mixture, of
    both directions together.

    Reference: Howard, Ramdas, McAuliffe and Sekhon (2021), theorem 4, propositions 5 and 9.
    """
    mixing = mixing_precision(tightest_at, error)
    if scale == 0:
        total = variance + mixing
        return math.sqrt(total * (math.log(total / mixing) + 2 * math.log(1 / error)))

    def excess(deviation: float) -> float:
        return float(log_mixture(deviation, variance, scale, mixing)) - math.log(2 / error)

    upper = math.sqrt(variance + mixing) + scale
    while excess(upper) < 0:
        upper *= 2
    return float(scipy.optimize.brentq(excess, 0.0, upper, xtol=1e-9 * upper))


def log_mixture(deviation: Any, variance: Any, scale: float, mixing: float) -> Any:
    """Return the logarithm of the gamma-exponential mixture at S = ``deviation``, V = ``variance``.

    Both may be arrays. λ is mixed so that y = 1 − cλ has the density of a gamma distribution of
    shape and rate ``mixing`` / c², cut off at 1.
    """
    prior = mixing / scale**2
    shape = (variance + mixing) / scale**2
    rate = (scale * deviation + variance + mixing) / scale**2
    grown = (scale * deviation + variance) / scale**2
    return _log_integral(shape, rate) - _log_integral(prior, prior) + grown


def _log_integral(shape: Any, rate: Any) -> Any:
    """Return the logarithm of ∫₀¹ y^(shape − 1) exp(−rate y) dy."""
    return (
        scipy.special.gammaln(shape)
        + np.log(scipy.special.gammainc(shape, rate))
        - shape * np.log(rate)
    )


def mixing_precision(tightest_at: float, error: float) -> float:
    """Return ρ for which the normal mixture is narrowest about this variance.

    Reference: Howard, Ramdas, McAuliffe and Sekhon (2021), section 3.5.
    """
    limit = 2 * math.log(1 / error)
    return tightest_at / (limit + math.log(1 + limit))
