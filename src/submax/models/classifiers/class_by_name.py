"""Look-up of classes of classifiers and other models by dotted names."""

import importlib
import inspect
from typing import Any

from submax.core.errors import InputError, one_line

EXAMPLE = "'sklearn.linear_model.LogisticRegression'"


def class_by_name(name: str, role: str = "classifier", methods: str = "predict_proba") -> Any:
    """Import and return the class with the dotted name ``package.module.Class``.

    ``role`` and ``methods`` are words of the errors: for what the class is needed, and which
    methods it must have beside fit.

    >>> class_by_name("sklearn.naive_bayes.GaussianNB").__name__
    'GaussianNB'
    """
    module_name, _, class_name = name.rpartition(".")
    if not module_name or not all(part.isidentifier() for part in name.split(".")):
        raise InputError(
            f"{role} {name!r} is not a dotted name; a package, its modules and a class are "
            f"allowed: write it as {EXAMPLE}",
            parameter=role,
        )
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise InputError(
            f"{role} {name!r} cannot be imported ({one_line(error)}); any installed package is "
            f"allowed: check the name, or install {name.partition('.')[0]}",
            parameter=role,
        ) from error
    found = getattr(module, class_name, None)
    if inspect.isclass(found) and hasattr(found, "fit"):
        return found
    what = (
        "there is no such name in its module"
        if found is None
        else "it is not a class with a method fit"
    )
    raise InputError(
        f"{role} {name!r} cannot be used: {what}; a class with the methods fit and "
        f"{methods} is allowed: name one, such as {EXAMPLE}",
        parameter=role,
    )
