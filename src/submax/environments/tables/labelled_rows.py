"""Rows of a table with their labels, as `Classification` uses them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.environments.tables.table_file import first_row


class LabelledRows(NamedTuple):
    """``features [N, D]``, the K ``classes`` in order, and how often each goes with which row.

    ``key`` has the distinct rows as bytes, in order; ``share [len(key), K]`` belongs to it.
    """

    features: Floats
    classes: NDArray[Any]
    key: NDArray[np.bytes_]
    share: Floats


def feature_array(features: ArrayLike) -> Floats:
    """The features as ``[N, D]``, refused if they are not finite numbers."""
    try:
        array = np.array(features, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"features must be numbers: {error}") from error
    if array.ndim != 2:
        raise InputError(f"features must have the shape [N, D], not {array.shape}")
    for row, column in np.argwhere(~np.isfinite(array))[:1]:
        value = array[row, column]
        raise InputError(
            f"features must be finite, and column {column + 1}, row {row + 1} holds {value}"
        )
    return array


def labelled_rows(features: Floats, labels: NDArray[Any], standardize: bool) -> LabelledRows:
    """The table of these features ``[N, D]`` and labels ``[N]``."""
    if labels.shape != (len(features),):
        raise InputError(
            f"there must be one label for each of the {len(features)} rows of features, "
            f"and the labels have shape {labels.shape}"
        )
    if features.size == 0:
        raise InputError(f"the table must have rows and features, not {features.shape}")
    classes, label = _classes(labels)
    features = _standardized(features) if standardize else features
    # Adding zero makes −0 and 0, which are equal, the same bytes.
    features = np.ascontiguousarray(features) + 0.0
    key, row = np.unique(_key(features), return_inverse=True)
    pairs = np.bincount(row * len(classes) + label, minlength=len(key) * len(classes))
    count = pairs.reshape(len(key), len(classes))
    return LabelledRows(features, classes, key, count / count.sum(axis=1, keepdims=True))


def _classes(labels: NDArray[Any]) -> tuple[NDArray[Any], Integers]:
    """The distinct labels in order, and each row's position among them."""
    try:
        classes, label = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise InputError(f"labels must be of one type that can be sorted: {error}") from error
    if np.any(classes != classes):
        raise InputError(f"there is no label in row {first_row(labels != labels)}")
    if len(classes) < 2:
        raise InputError(f"there must be at least 2 classes, not {len(classes)}")
    return classes, label


def _standardized(features: Floats) -> Floats:
    constant = features.min(axis=0) == features.max(axis=0)
    centred = np.where(constant, 0.0, features - features.mean(axis=0))
    scaled: Floats = centred / np.where(constant, 1.0, features.std(axis=0))
    return scaled


def _key(features: Floats) -> NDArray[np.bytes_]:
    """Each row as one string of bytes: ``[N, D] -> [N]``."""
    kind: np.dtype[Any] = np.dtype(("S", features.itemsize * features.shape[1]))
    key: NDArray[np.bytes_] = np.ascontiguousarray(features).view(kind)[:, 0]
    return key


def position_of(key: NDArray[np.bytes_], context: Floats) -> Integers:
    """The position of each context among the distinct rows: ``[R, n, D] -> [R, n]``."""
    wanted = _key(context.reshape(-1, context.shape[-1]) + 0.0)
    row = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    if not np.array_equal(key[row], wanted):
        raise InputError("a context must be a row of the table, features as `rows` has them")
    return row.reshape(context.shape[:2])
