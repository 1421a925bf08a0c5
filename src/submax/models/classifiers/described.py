"""Descriptions of classifiers as text, by which they are compared."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def described(value: Any) -> str:
    """Return the constructor call of a classifier, with all its parameters.

    Two classifiers with the same text give the same fit. The objects themselves cannot be compared,
    because libraries do not define equality of classifiers.

    >>> from sklearn.naive_bayes import GaussianNB
    >>> described(GaussianNB())
    'sklearn.naive_bayes.GaussianNB(priors=None, var_smoothing=1e-09)'
    """
    if isinstance(value, np.ndarray):
        return f"array({value.tolist()!r}, {value.dtype})"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(described, value))}]"
    if isinstance(value, Mapping):
        return f"{{{_listed(value)}}}"
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    if hasattr(value, "get_params"):
        return f"{described(type(value))}({_listed(value.get_params(deep=False))})"
    if repr(value) == object.__repr__(value):
        return f"{described(type(value))}({_listed(vars(value))})"
    return repr(value)


def _listed(table: Mapping[Any, Any]) -> str:
    return ", ".join(f"{key}={described(table[key])}" for key in sorted(table, key=str))
