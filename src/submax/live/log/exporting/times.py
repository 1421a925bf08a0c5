"""Times of events as Arrow timestamps."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from submax.core.arrays import Floats


def arrow_times(seconds: Sequence[float] | Floats) -> Any:
    """Return seconds since the epoch as timestamps, rounded as ``datetime.fromtimestamp`` does."""
    import pyarrow as pa

    fraction, whole = np.modf(np.asarray(seconds, np.float64))
    microseconds = whole.astype(np.int64) * 1_000_000 + np.rint(fraction * 1e6).astype(np.int64)
    return pa.array(microseconds).cast(pa.timestamp("us", tz="UTC"))
