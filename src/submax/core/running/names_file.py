"""Which policy specifications would import code of the user's own."""

from collections.abc import Mapping

KNOWN_PACKAGES = ("sklearn", "lightgbm", "xgboost", "catboost")
"""Packages whose models may be named without ``trust``: importing them runs known code."""

CLASS_KEYS = ("classifier", "regressor")
"""Parameters whose value is the dotted name of a class."""


def names_file(specification: object) -> bool:
    """Return whether a specification names a class outside of submax and the known packages.

    Loading such a class runs code of the user's own, and therefore needs ``trust``.

    >>> names_file({"kind": "unlisted", "policy": {"kind": "my_policy.py:MyPolicy"}})
    True
    >>> names_file({"kind": "classifier", "classifier": "my_package.Mine"})
    True
    >>> names_file({"kind": "classifier", "classifier": "sklearn.naive_bayes.GaussianNB"})
    False
    >>> names_file("rcp-submax")
    False
    """
    if isinstance(specification, str):
        return ":" in specification
    if isinstance(specification, Mapping):
        if any(_is_foreign(specification.get(key, "sklearn")) for key in CLASS_KEYS):
            return True
        return any(names_file(value) for value in specification.values())
    return isinstance(specification, (list, tuple)) and any(map(names_file, specification))


def _is_foreign(name: object) -> bool:
    if isinstance(name, (list, tuple)):
        return any(map(_is_foreign, name))
    return isinstance(name, str) and name.partition(".")[0] not in KNOWN_PACKAGES
