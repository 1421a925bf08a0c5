"""The standard error of a mean."""

import numpy as np

from submax.core.arrays import Floats


def standard_error(values: Floats) -> float:
    """Return the sample standard deviation divided by √n; NaN for fewer than two values."""
    if len(values) < 2:
        return float("nan")
    return float(values.std(ddof=1) / np.sqrt(len(values)))
