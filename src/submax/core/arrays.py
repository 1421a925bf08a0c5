"""Type aliases for the arrays that modules pass to each other."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Booleans: TypeAlias = NDArray[np.bool_]
Actions: TypeAlias = NDArray[Any]
"""Actions: integers, or floats if some part of an action is real-valued."""
