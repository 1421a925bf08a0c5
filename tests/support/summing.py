"""Estimates from the terms of some rows alone."""

from typing import Any

import numpy as np

from submax.statistics.intervals import Summed
from submax.statistics.sums import Terms, TermSums, Units


def summed(terms: Terms, cluster: Any = None) -> Summed:
    """The estimate and what its intervals depend on, by blocks of single rows or by cluster."""
    units = Units(np.arange(len(terms.numerator)), len(terms.numerator))
    if cluster is not None:
        units = Units(cluster, int(cluster.max()) + 1, clusters=True)
    centre = terms.value if np.isfinite(terms.value) else 0.0
    return TermSums.of(terms, None, centre, units).estimate()
