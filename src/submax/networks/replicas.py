"""Networks of all replicas, put together from two."""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans

Parameters = dict[str, NDArray[np.float32]]


def parameters_where(chosen: Booleans, new: Parameters, old: Parameters) -> Parameters:
    """New parameters in the replicas that are ``chosen [R]``, else the old where there are any."""
    if not old:
        return new
    return dict(zip(new, where_chosen(chosen, new.values(), old.values()), strict=True))


def where_chosen(
    chosen: Booleans, one: Iterable[NDArray[np.float32]], other: Iterable[NDArray[np.float32]]
) -> Iterator[NDArray[np.float32]]:
    """Each array of one network in the replicas that are ``chosen [R]``, else of the other."""
    for mine, yours in zip(one, other, strict=True):
        yield np.where(chosen.reshape(-1, *[1] * (mine.ndim - 1)), mine, yours)
