"""An estimate as a mean of terms."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats


class Terms(NamedTuple):
    """The value is Σ ``numerator`` / Σ ``denominator``, both ``[n]``; without the latter, a mean.

    ``width`` is that of an interval that holds all terms of the estimate, as ``influence`` gives
    them; None where only those seen are known. ``threshold`` is the one used, where there is any,
    and ``lost [n]`` what it took from each term.
    """

    numerator: Floats
    denominator: Floats | None = None
    width: float | None = None
    threshold: float | None = None
    lost: Floats | None = None

    def bias(self, errors: float) -> float:
        """The bias of a threshold at its worst: the mean loss and so many standard errors."""
        if self.lost is None:
            return 0.0
        error = self.lost.std() / np.sqrt(len(self.lost))
        return float(abs(self.lost.mean()) + errors * error)

    @property
    def value(self) -> float:
        """The estimate; NaN where nothing counts."""
        if self.denominator is None:
            return float(self.numerator.mean())
        total = self.denominator.sum()
        return float(self.numerator.sum() / total) if total > 0 else float("nan")

    def influence(self) -> Floats:
        """The terms of which the estimate is the mean, to first order, ``[n]``.

        For a ratio v = ȳ / z̄ these are v + (y_i − v z_i) / z̄.
        """
        if self.denominator is None:
            return self.numerator
        value, mean = self.value, self.denominator.mean()
        if not mean > 0:
            return np.full(len(self.numerator), np.nan)
        found: Floats = value + (self.numerator - value * self.denominator) / mean
        return found
