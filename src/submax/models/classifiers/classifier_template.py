"""An unfitted classifier that is copied for every fit."""

import copy
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import one_of
from submax.core.errors import InputError, one_line
from submax.models.classifiers.class_by_name import EXAMPLE, class_by_name
from submax.models.classifiers.described import described
from submax.models.classifiers.fitted_classifier import FittedClassifier

METHODS = ("fit", "predict_proba")
"""The methods that a classifier must have."""


@dataclass(frozen=True, eq=False)
class ClassifierTemplate:
    """A classifier of any library. It is copied for every fit and never fitted itself.

    Two templates are equal if their classifiers are of one class with the same parameters.
    """

    unfitted: Any

    @classmethod
    def of(cls, given: object, parameters: Mapping[str, Any]) -> Self:
        """Return the template for a classifier object, or for a dotted name with ``parameters``."""
        if isinstance(given, str):
            return cls(_checked(_made(given, parameters)))
        if parameters:
            raise InputError(
                f"parameters {sorted(parameters)} were given with an object; they are allowed "
                "with a dotted name alone: set them on the object",
                parameter="parameters",
            )
        return cls(copied(_checked(given)))

    @cached_property
    def text(self) -> str:
        """The class and all its parameters as text, by which templates are compared."""
        return described(self.unfitted)

    @property
    def name(self) -> str:
        """The name of the class, for messages."""
        return type(self.unfitted).__name__

    def fitted(
        self, features: Floats, action: Integers, weight: Floats, seed: int
    ) -> FittedClassifier | None:
        """Return a copy fitted to rows ``[n, W]``, or None if all rows have the same action.

        A parameter ``random_state`` that is None is set to ``seed``. If weights differ and the
        classifier does not take them, n rows are drawn in proportion to their weights.
        """
        model, options = seeded(copied(self.unfitted), seed), {}
        if not np.all(weight == 1):
            argument = weight_argument(model)
            if argument is not None:
                options[argument] = weight
            elif not np.all(weight == weight[:1]):
                rows = resampled(weight, np.random.default_rng(seed))
                features, action = features[rows], action[rows]
        seen, target = np.unique(action, return_inverse=True)
        if len(seen) < 2:
            return None
        try:
            model.fit(features, target, **options)
        except Exception as error:
            raise InputError(
                f"the classifier {self.name} cannot be fitted to {len(action)} rows with "
                f"{len(seen)} actions ({one_line(error)}); any that can be is allowed: change its "
                "parameters, or set minimum_rows to wait for more rows"
            ) from error
        return FittedClassifier(model, seen)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClassifierTemplate) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


def weight_argument(model: Any) -> str | None:
    """Return the name of the argument of ``fit`` for weights; None if there is no such argument.

    The weights of a pipeline are passed to its last step.
    """
    if "sample_weight" in inspect.signature(model.fit).parameters:
        return "sample_weight"
    steps = getattr(model, "steps", None)
    if not steps:
        return None
    name, last = steps[-1]
    inner = weight_argument(last) if hasattr(last, "fit") else None
    return None if inner is None else f"{name}__{inner}"


def resampled(weight: Floats, rng: np.random.Generator) -> Integers:
    """Draw n of n rows with probabilities proportional to their weights: ``[n] -> [n]``.

    The sample is systematic: row i is drawn n w_i / Σ w times, rounded down or up.

    >>> resampled(np.array([2.0, 1.0, 0.0, 1.0]), np.random.default_rng(0)).tolist()
    [0, 0, 1, 3]
    """
    cumulated = np.cumsum(weight)
    places = (rng.random() + np.arange(len(weight))) * (cumulated[-1] / len(weight))
    rows = np.searchsorted(cumulated, places, side="right")
    drawn: Integers = np.minimum(rows, np.flatnonzero(weight)[-1])
    return drawn


def _made(name: str, parameters: Mapping[str, Any]) -> Any:
    kind = class_by_name(name)
    known = inspect.signature(kind).parameters
    if not any(one.kind is one.VAR_KEYWORD for one in known.values()):
        for key in parameters:
            one_of(f"parameter of {name}:", key, known)
    try:
        return kind(**parameters)
    except Exception as error:
        raise InputError(
            f"{name} cannot be made from parameters {dict(parameters)} ({one_line(error)}); "
            f"allowed: {', '.join(known) or 'none'}: change the parameters",
            parameter="parameters",
        ) from error


def _checked(given: Any) -> Any:
    """Return the classifier, or raise an ``InputError`` if it lacks a method."""
    if inspect.isclass(given):
        raise InputError(
            f"classifier is the class {given.__name__}; an object is allowed: write "
            f"{given.__name__}() with its parameters",
            parameter="classifier",
        )
    missing = [method for method in METHODS if not callable(getattr(given, method, None))]
    if missing:
        raise InputError(
            f"classifier is {given!r:.80}, without the method {' and '.join(missing)}; an object "
            f"with fit and predict_proba is allowed, or a dotted name such as {EXAMPLE}: take "
            "another classifier, or wrap this one in sklearn.calibration.CalibratedClassifierCV",
            parameter="classifier",
        )
    return given


def copied(given: Any) -> Any:
    """Return an unfitted copy."""
    if not hasattr(given, "get_params") or find_spec("sklearn") is None:
        return copy.deepcopy(given)
    from sklearn.base import clone

    return clone(given)


def seeded(model: Any, seed: int) -> Any:
    """Set every parameter ``random_state`` that is None to the seed."""
    if hasattr(model, "get_params"):
        given = model.get_params().items()
        unset = [name for name, value in given if value is None and _is_random_state(name)]
        model.set_params(**dict.fromkeys(unset, seed))
    return model


def _is_random_state(name: str) -> bool:
    return name.rpartition("__")[2] == "random_state"
