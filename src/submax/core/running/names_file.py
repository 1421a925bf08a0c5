"""Which names are code: classes in someone's own file or package."""

from collections.abc import Mapping

KNOWN_PACKAGES = ("sklearn", "lightgbm", "xgboost", "catboost")
"""Packages whose classifiers may be named without trust: importing them runs no one's own code."""


def names_file(specification: object) -> bool:
    """Whether a name, or anything in a table, is a class of someone's own, which would be run.

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
        if _is_foreign(specification.get("classifier", "sklearn")):
            return True
        return any(names_file(value) for value in specification.values())
    return isinstance(specification, (list, tuple)) and any(map(names_file, specification))


def _is_foreign(classifier: object) -> bool:
    return isinstance(classifier, str) and classifier.partition(".")[0] not in KNOWN_PACKAGES
