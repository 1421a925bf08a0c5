"""Whether draws agree with the probabilities they were drawn with."""

from collections.abc import Callable

import numpy as np
import scipy

from submax.core.arrays import Floats, Integers

SMALLEST_P_VALUE = 1e-9
"""What the suites accept: they make some thousand comparisons, and must pass for any seed."""
FEWEST_EXPECTED = 5.0
SHARES = (0.2, 0.4, 1.0)
"""Shares of the draws after which they are compared with the probabilities. The first share that
agrees well is enough."""
GOOD_P_VALUE = 0.2
"""Draws agree well with their probabilities if the p-value is above this."""


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
    # Rounding can make the distance of equal frequencies negative.
    distance = max(0.0, 2 * float(np.sum(scipy.special.xlogy(observed, observed / expected))))
    return float(scipy.special.chdtrc(len(expected) - 1, distance)) if len(expected) > 1 else 1.0


def p_value_in_steps(draw: Callable[[], Integers], probabilities: Floats, most: int) -> float:
    """Compute `goodness_of_fit` of a share of ``most`` draws, and of more if it is not good.

    ``draw`` returns several indices. If the probabilities are right, four of five comparisons end
    after a fifth of the draws. If they are wrong, 1,500 draws in steps find out more than 1,200 at
    once: for example, three arms of probability 1/3 of which one is chosen 10 percentage points
    more often and another less often are found out with probability 0.997 instead of 0.993.
    """
    drawn: list[Integers] = []
    count, p_value = 0, 0.0
    for share in SHARES:
        while count < share * most:
            drawn.append(draw())
            count += drawn[-1].size
        p_value = goodness_of_fit(np.concatenate(drawn), probabilities)
        if p_value > GOOD_P_VALUE:
            break
    return p_value


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
