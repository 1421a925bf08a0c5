"""Whether draws agree with the probabilities they were drawn with."""

import numpy as np
from scipy import special, stats

from submax.core.arrays import Floats, Integers

SMALLEST_P_VALUE = 1e-9
"""What the suites accept: they make some thousand comparisons, and must pass for any seed."""
FEWEST_EXPECTED = 5.0


def goodness_of_fit(drawn: Integers, probabilities: Floats) -> float:
    """Compute the p-value of a χ² test for indices drawn from ``probabilities [M]``.

    χ² = 2 Σ_a n_a ln(n_a / (N p_a)), the likelihood ratio, with the rare indices counted as one.
    Pearson's form gives false alarms at such small p-values: 65 times too many where an index is
    expected five times. An index of probability 0 that was drawn gives 0.

    >>> goodness_of_fit(np.array([0, 1] * 50), np.array([0.5, 0.5, 0.0]))
    1.0
    >>> goodness_of_fit(np.array([2]), np.array([0.5, 0.5, 0.0]))
    0.0
    """
    counts = np.bincount(drawn.ravel(), minlength=len(probabilities))
    if np.any(counts[probabilities == 0] > 0):
        return 0.0
    observed, expected = _pooled(counts, probabilities * drawn.size)
    distance = 2 * float(np.sum(special.xlogy(observed, observed / expected)))
    return float(stats.chi2.sf(distance, len(expected) - 1)) if len(expected) > 1 else 1.0


def _pooled(counts: Integers, expected: Floats) -> tuple[Floats, Floats]:
    """Add up the smallest cells until the sum can be expected often enough."""
    order = np.argsort(expected)
    enough = np.searchsorted(np.cumsum(expected[order]), FEWEST_EXPECTED)
    first = min(int(enough), len(order) - 1) + 1
    rare, common = order[:first], order[first:]
    return (
        np.append(counts[common], counts[rare].sum()).astype(np.float64),
        np.append(expected[common], expected[rare].sum()),
    )
