"""Selection between two sets of network parameters, replica by replica."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans

Parameters = dict[str, NDArray[np.float32]]


def parameters_where(chosen: Booleans, new: Parameters, old: Parameters) -> Parameters:
    """Return the new parameters in the replicas ``chosen [R]``, and the old ones, if any, else."""
    if not old:
        return new
    return dict(zip(new, where_chosen(chosen, new.values(), old.values()), strict=True))


def where_chosen(
    chosen: Booleans, one: Iterable[NDArray[np.float32]], other: Iterable[NDArray[np.float32]]
) -> Iterator[NDArray[np.float32]]:
    """Yield each array of one network in the replicas ``chosen [R]``, else of the other one."""
    for mine, yours in zip(one, other, strict=True):
        yield np.where(chosen.reshape(-1, *[1] * (mine.ndim - 1)), mine, yours)
