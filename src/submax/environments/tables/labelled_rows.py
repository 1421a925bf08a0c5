"""Rows of a table with their labels, as `Classification` uses them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.environments.tables.table_file import first_row


class LabelledRows(NamedTuple):
    """The ``features [N, D]``, the K ``classes`` in order, and the classes' shares by row.

    ``key [U]`` has the U distinct rows of features as byte strings, in order. ``share [U, K]`` is
    the share of each class among all rows with these features.
    """

    features: Floats
    classes: NDArray[Any]
    key: NDArray[np.bytes_]
    share: Floats


def feature_array(features: ArrayLike) -> Floats:
    """The features as an array ``[N, D]``; anything but finite numbers is refused."""
    try:
        array = np.array(features, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"features must be numbers: {error}", parameter="features") from error
    if array.ndim != 2:
        raise InputError(
            f"features must be an array [N, D], one row for each label, not of shape {array.shape}",
            parameter="features",
        )
    for row, column in np.argwhere(~np.isfinite(array))[:1]:
        value = array[row, column]
        raise InputError(
            f"features must be finite numbers, but column {column + 1}, row {row + 1} holds "
            f"{value}: replace the value or remove the row",
            parameter="features",
        )
    return array


def labelled_rows(features: Floats, labels: NDArray[Any], standardize: bool) -> LabelledRows:
    """Combine features ``[N, D]`` and labels ``[N]``, and count the labels of equal rows."""
    if labels.shape != (len(features),):
        raise InputError(
            f"labels must have one entry for each of the {len(features)} rows of features, not "
            f"the shape {labels.shape}",
            parameter="labels",
        )
    if features.size == 0:
        raise InputError(
            "the data must have at least one row and one feature, not the shape "
            f"{features.shape} of rows and features",
            parameter="features",
        )
    classes, label = _classes(labels)
    features = _standardized(features) if standardize else features
    # Adding zero turns −0 into 0, so that equal numbers have equal bytes.
    features = np.ascontiguousarray(features) + 0.0
    key, row = np.unique(_key(features), return_inverse=True)
    pairs = np.bincount(row * len(classes) + label, minlength=len(key) * len(classes))
    count = pairs.reshape(len(key), len(classes))
    return LabelledRows(features, classes, key, count / count.sum(axis=1, keepdims=True))


def _classes(labels: NDArray[Any]) -> tuple[NDArray[Any], Integers]:
    """The distinct labels in order, and each row's index among them."""
    try:
        classes, label = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise InputError(
            f"labels must be of one type that can be sorted: {error}", parameter="labels"
        ) from error
    if np.any(classes != classes):
        raise InputError(
            f"row {first_row(labels != labels)} has no label, and every row needs one: fill in the "
            "label or remove the row",
            parameter="labels",
        )
    if len(classes) < 2:
        raise InputError(
            f"there must be at least 2 different labels, one for each arm, not {len(classes)}",
            parameter="labels",
        )
    return classes, label


def _standardized(features: Floats) -> Floats:
    constant = features.min(axis=0) == features.max(axis=0)
    centred = np.where(constant, 0.0, features - features.mean(axis=0))
    scaled: Floats = centred / np.where(constant, 1.0, features.std(axis=0))
    return scaled


def _key(features: Floats) -> NDArray[np.bytes_]:
    """Each row of features as one byte string: ``[N, D] -> [N]``."""
    kind: np.dtype[Any] = np.dtype(("S", features.itemsize * features.shape[1]))
    key: NDArray[np.bytes_] = np.ascontiguousarray(features).view(kind)[:, 0]
    return key


def position_of(key: NDArray[np.bytes_], context: Floats) -> Integers:
    """The index of each context among the distinct rows: ``[R, n, D] -> [R, n]``."""
    wanted = _key(context.reshape(-1, context.shape[-1]) + 0.0)
    row = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    if not np.array_equal(key[row], wanted):
        raise InputError(
            "a context is not a row of the data set: take contexts from rows.features, which are "
            "standardized if standardize is true",
            parameter="context",
        )
    return row.reshape(context.shape[:2])
