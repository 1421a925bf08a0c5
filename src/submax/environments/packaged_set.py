"""Classification sets that come inside an installed package; nothing is downloaded."""

from pathlib import Path

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import one_of
from submax.core.extras import require_extra

LOADERS = {
    "sklearn:breast_cancer": "load_breast_cancer",
    "sklearn:digits": "load_digits",
    "sklearn:iris": "load_iris",
    "sklearn:wine": "load_wine",
}
"""The sets, and the functions of ``sklearn.datasets`` that load them from its own files."""


def is_packaged(file: str) -> bool:
    """Whether it is written as a packaged set, ``package:name``, and not as a file."""
    return ":" in file and Path(file).name == file and not Path(file).suffix


def check_packaged(name: str) -> None:
    """Refuse a set that is not listed, or whose package is not installed."""
    one_of("packaged set", name, LOADERS)
    require_extra("data", name, "sklearn")


def load_packaged(name: str) -> tuple[Floats, Integers]:
    """Features ``[N, D]`` and labels ``[N]``, as the package has them."""
    check_packaged(name)
    # Importing it takes a second, which only those wait who use it.
    from sklearn import datasets

    features, labels = getattr(datasets, LOADERS[name])(return_X_y=True)
    return np.asarray(features, dtype=np.float64), np.asarray(labels, dtype=np.int64)
