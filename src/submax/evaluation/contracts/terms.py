"""An off-policy estimate as a mean, or a ratio of means, of terms."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.contracts.counts import mean, total


class Terms(NamedTuple):
    """An estimate Σ ``numerator`` / Σ ``denominator``, or the mean of ``numerator [n]``.

    The estimate is the mean if ``denominator [n]`` is None. ``reach`` are the smallest and the
    largest possible term, as returned by ``influence``; None if only the observed terms are known.
    ``threshold`` is the weight threshold that was used, if any, and ``without_threshold`` are the
    terms without it. ``counts [n]`` is the number of equal decisions that each term stands for;
    None if it is one.
    """

    numerator: Floats
    denominator: Floats | None = None
    reach: tuple[float, float] | None = None
    threshold: float | None = None
    without_threshold: "Terms | None" = None
    counts: Floats | None = None

    @property
    def decisions(self) -> float:
        """The number of decisions."""
        return total(self.numerator, self.counts)

    @property
    def value(self) -> float:
        """The estimate; NaN if the denominators add up to 0."""
        if self.denominator is None:
            return mean(self.numerator, self.counts)
        below = mean(self.denominator, self.counts)
        return mean(self.numerator, self.counts) / below if below > 0 else float("nan")

    def influence(self) -> Floats:
        """Return the terms whose mean is, to first order, the estimate, ``[n]``.

        For a ratio v = ȳ / z̄ (delta method) these are v + (y_i − v z_i) / z̄.
        """
        if self.denominator is None:
            return self.numerator
        value, below = self.value, mean(self.denominator, self.counts)
        if not below > 0:
            return np.full(len(self.numerator), np.nan)
        terms: Floats = value + (self.numerator - value * self.denominator) / below
        return terms
