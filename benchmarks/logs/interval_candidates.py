"""Confidence intervals among which the default was chosen; those of the library and others."""

import importlib
from collections.abc import Callable

import numpy as np
from scipy.special import gammaincinv

from submax.core.arrays import Floats
from submax.evaluation.intervals import INTERVALS, ConfidenceInterval
from submax.evaluation.sums import Terms

LEVEL = 0.95
TAIL = (1 - LEVEL) / 2
GRID = 400
"""Values of the mean at which a bet is tried."""
Candidate = Callable[[Terms], ConfidenceInterval]
gamma_module = importlib.import_module("submax.evaluation.intervals")


def of_library(name: str) -> Candidate:
    """Return a kind of intervals of the library."""
    return lambda terms: INTERVALS[name]([terms.summed()], LEVEL, np.random.default_rng(0))[0]


def gamma_with(share: float) -> Candidate:
    """Return the gamma intervals with another share of a pseudo-observation."""

    def compute(terms: Terms) -> ConfidenceInterval:
        before = gamma_module.PSEUDO_OBSERVATION
        gamma_module.PSEUDO_OBSERVATION = share
        try:
            return of_library("gamma")(terms)
        finally:
            gamma_module.PSEUDO_OBSERVATION = before

    return compute


def fay_feuer(terms: Terms) -> ConfidenceInterval:
    """Return the gamma interval of a weighted Poisson sum, for terms that are not negative.

    Reference: Fay and Feuer (1997), equations 7 and 8.
    """
    count, total = len(terms.numerator), 1.0
    if terms.denominator is not None:
        total = float(terms.denominator.mean())
    weighted = terms.numerator / total / count
    largest = (terms.reach or (0.0, 0.0))[1] / count
    value, variance = float(weighted.sum()), float(weighted @ weighted)
    low = 0.0
    if value > 0:
        low = variance / value * gammaincinv(value**2 / variance, TAIL)
    more, spread = value + largest, variance + largest**2
    return ConfidenceInterval(low, spread / more * gammaincinv(more**2 / spread, 1 - TAIL))


def betting(terms: Terms) -> ConfidenceInterval:
    """Return the hedged betting interval of a mean of bounded terms, with bets for a fixed n.

    Reference: Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by
    betting, theorem 3.
    """
    low, high = terms.reach or (0.0, 1.0)
    unit = (terms.numerator - low) / (high - low)
    count = len(unit)
    before = np.arange(1, count + 1)
    mean = (0.5 + np.cumsum(unit)) / (before + 1)
    variance = (0.25 + np.cumsum((unit - mean) ** 2)) / (before + 1)
    known = np.append(0.25, variance[:-1])
    bet = np.sqrt(2 * np.log(2 / (1 - LEVEL)) / (count * known))
    centre = float(unit.mean())
    reach = 30 * max(float(np.sqrt(variance[-1] / count)), 1 / count)
    grid = np.linspace(max(centre - reach, 1e-9), min(centre + reach, 1 - 1e-9), GRID)
    inside = [m for m in grid if _capital(unit, bet, float(m)) < 1 / (1 - LEVEL)]
    if not inside:
        return ConfidenceInterval(terms.value, terms.value)
    return ConfidenceInterval(
        low + (high - low) * float(min(inside)), low + (high - low) * float(max(inside))
    )


def _capital(unit: Floats, bet: Floats, mean: float) -> float:
    """Return the larger half of the capital after betting that the mean is above, and below."""
    up = np.log1p(np.minimum(bet, 0.5 / mean) * (unit - mean)).sum()
    down = np.log1p(-np.minimum(bet, 0.5 / (1 - mean)) * (unit - mean)).sum()
    return float(np.exp(min(max(up, down), 50.0)) / 2)


CANDIDATES: dict[str, Candidate] = {
    "normal": of_library("normal"),
    "bernstein": of_library("bernstein"),
    "gamma, no pseudo-observation": gamma_with(0.0),
    "gamma, half": gamma_with(0.5),
    "gamma, whole": gamma_with(1.0),
    "Fay and Feuer": fay_feuer,
    "betting": betting,
}
"""All candidates. The last two apply only to means of weighted rewards."""
ONLY_WEIGHTED = ("Fay and Feuer", "betting")
"""Candidates that apply only to weighted rewards, not to corrections of a model."""
