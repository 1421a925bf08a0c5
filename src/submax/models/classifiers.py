"""Classifiers of other libraries as models of p(action | context, reward)."""

import copy
import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import FallbackWarning, InputError, fall_back, one_line
from submax.core.optional import require_extra
from submax.core.rewards import RewardEncoding
from submax.core.serialization import serializable

EXAMPLE = "'sklearn.linear_model.LogisticRegression'"


def class_by_name(name: str, role: str = "classifier", methods: str = "predict_proba") -> Any:
    """Import and return the class with the dotted name ``package.module.Class``.

    ``role`` and ``methods`` are words of the errors: for what the class is needed, and which
    methods it must have beside fit.

    >>> class_by_name("sklearn.naive_bayes.GaussianNB").__name__
    'GaussianNB'
    """
    module_name, _, class_name = name.rpartition(".")
    if module_name.startswith("sklearn."):
        require_extra("data", f"the {role} {name!r}", "sklearn")
    try:
        result = getattr(importlib.import_module(module_name), class_name)
    except Exception as error:
        raise InputError(
            f"{role} {name!r} cannot be imported ({one_line(error)}): install its package, and "
            f"write the dotted name of a class, such as {EXAMPLE}",
            parameter=role,
        ) from error
    if not (inspect.isclass(result) and hasattr(result, "fit")):
        raise InputError(
            f"{role} {name!r} cannot be used: name a class with the methods fit and {methods}, "
            f"such as {EXAMPLE}",
            parameter=role,
        )
    return result


def described(value: Any) -> str:
    """Return the constructor call of a classifier, with all its parameters.

    Two classifiers with the same text give the same fit; libraries do not define their equality.

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


def reward_features(context: Floats, reward: Floats, reward_encoding: RewardEncoding) -> Floats:
    """Return the inputs (c, e, e ⊗ c) of a classifier: ``[R, n, D]`` and ``[R, n] -> [R, n, W]``.

    c is the context, and e the one-hot vector of the reward level nearest to the reward.

    >>> reward_encoding = RewardEncoding.fixed((0.0, 1.0), replicas=1)
    >>> context, reward = np.array([[[5.0, 7.0]]]), np.array([[1.0]])
    >>> reward_features(context, reward, reward_encoding).tolist()
    [[[5.0, 7.0, 0.0, 1.0, 0.0, 0.0, 5.0, 7.0]]]
    """
    level = np.eye(reward_encoding.levels.shape[1])[reward_encoding.nearest(reward)]
    products = [level[..., [index]] * context for index in range(level.shape[-1])]
    return np.concatenate([context, level, *products], axis=-1)


LARGEST_SEED = 2**31 - 1
"""Libraries of classifiers and regressors accept seeds below this number."""
Models = tuple[Any, ...]
"""A fitted model for each replica, None if it has none: of a classifier or of regressors."""


@serializable("model-cache")
@dataclass(init=False, eq=False)
class ModelCache:
    """The fitted models of all replicas; without ``models``, they are fitted on demand.

    It has no fields, so files do not contain models: they would be pickles, which run code when
    they are read. Models are fitted again from rows and seeds when they are first needed.
    """

    def __init__(self, models: Models | None = None) -> None:
        self._models = models

    def get(self, replicas: int, fit: Callable[[int], Any]) -> Models:
        """Return the models; ``fit`` makes that of each replica if the cache is empty."""
        if self._models is None:
            self._models = tuple(map(fit, range(replicas)))
        return self._models


class FitsModels(ABC):
    """A model of each replica, fitted to the rows of a state with ``seed [R]`` and ``models``.

    Objects are equal if their ``_key`` is: their hyper-parameters cannot be compared themselves.
    """

    _key: Any

    @abstractmethod
    def _fitted(self, state: Any, replica: int) -> Any:
        """Return the model of one replica; None if it has too few rows."""

    def _models(self, state: Any) -> Models:
        models: Models = state.models.get(len(state.seed), lambda one: self._fitted(state, one))
        return models

    def _refitted(self, before: Any, after: Any, news: Booleans) -> Any:
        """Return the state ``after`` new rows, with models fitted anew where there are ``news``."""
        models = enumerate(zip(self._models(before), news, strict=True))
        fitted = (self._fitted(after, one) if new else model for one, (model, new) in models)
        return after._replace(models=ModelCache(tuple(fitted)))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class Unpredicted(FallbackWarning):
    """The classifier gave no probabilities for some decisions, and counts were used instead."""


class FittedClassifier(NamedTuple):
    """A fitted ``model``, and the actions ``seen [K]`` in its rows, in the order of its classes."""

    model: Any
    seen: Integers

    def expected_counts(self, features: Floats, counts: Floats) -> Floats:
        """Return N_l p̂(a | c, r_l) for n contexts: ``[n · L, W]`` and ``[L, A] -> [n, L, A]``.

        N_l is the sum of the ``counts`` of level l, which stand in for a row without probabilities.
        """
        levels, size = counts.shape
        result = self.probabilities(features, size).reshape(-1, levels, size)
        known: Booleans = np.isfinite(result.sum(axis=-1))
        if not known.all():
            decisions = len(known) - int(np.count_nonzero(known.all(axis=1)))
            message = (
                f"the classifier {type(self.model).__name__} gave no probabilities in {decisions} "
                f"of {len(known)} contexts; the share of each action at the level is used instead"
            )
            fall_back(Unpredicted, message, decisions)
        total = counts.sum(axis=-1, keepdims=True)
        return np.where(known[..., None], total * result, counts)

    def probabilities(self, features: Floats, size: int) -> Floats:
        """Return the probability p̂ of each of ``size`` actions: ``[m, W] -> [m, size]``.

        An action that did not occur in the rows has probability 0. A row is NaN if the model's
        outputs for it are negative, not finite, or all 0.
        """
        result = np.zeros((len(features), size))
        if not len(features):
            return result
        try:
            predicted = np.asarray(self.model.predict_proba(features), dtype=np.float64)
        except Exception as error:
            raise InputError(
                f"the classifier {type(self.model).__name__} cannot predict among "
                f"{len(self.seen)} actions ({one_line(error)}): "
                "change its parameters, or set minimum_rows to wait for more rows"
            ) from error
        total = predicted.sum(axis=1, keepdims=True)
        fits = np.isfinite(total) & (total > 0) & (predicted.min(axis=1, keepdims=True) >= 0)
        # Some libraries compute in float32, so their sums differ from 1 by rounding.
        result[:, self.seen] = np.where(fits, predicted / np.where(fits, total, 1.0), np.nan)
        return result


def unfitted_classifier(classifier: object, parameters: Mapping[str, Any]) -> Any:
    """Return a copy of a classifier object, or that of a dotted name with ``parameters``."""
    if isinstance(classifier, str):
        return _checked(made(class_by_name(classifier), classifier, parameters))
    if parameters:
        raise InputError(
            f"parameters {sorted(parameters)} belong to a dotted name: set them on the object",
            parameter="parameters",
        )
    return copied(_checked(classifier))


def fitted_classifier(
    unfitted: Any, features: Floats, action: Integers, weight: Floats, seed: int
) -> FittedClassifier | None:
    """Return a copy fitted to rows ``[n, W]``, or None if all rows have the same action.

    A parameter ``random_state`` that is None is set to ``seed``. If weights differ and the
    classifier does not take them, n rows are drawn in proportion to their weights.
    """
    model = seeded(copied(unfitted), seed)
    options, rows = weighing(model, weight, seed)
    features, action = features[rows], action[rows]
    seen, target = np.unique(action, return_inverse=True)
    if len(seen) < 2:
        return None
    try:
        model.fit(features, target, **options)
    except Exception as error:
        raise InputError(
            f"the classifier {type(model).__name__} cannot be fitted to {len(action)} rows "
            f"with {len(seen)} actions ({one_line(error)}): change its "
            "parameters, or set minimum_rows to wait for more rows"
        ) from error
    return FittedClassifier(model, seen)


class FittedRegressor(NamedTuple):
    """A fitted model of rewards: a regressor, or a classifier of the rewards ``values``."""

    model: Any
    values: Floats | None = None

    def predict(self, features: Floats) -> Floats:
        """Return the expected reward of each row, for a classifier the mean over its classes."""
        if self.values is None:
            return np.asarray(self.model.predict(features), dtype=np.float64).reshape(-1)
        return np.asarray(self.model.predict_proba(features), dtype=np.float64) @ self.values


def fitted_regressor(
    unfitted: Any, features: Floats, reward: Floats, weight: Floats, seed: int, role: str
) -> FittedRegressor:
    """Return a copy fitted to rows ``[n, W]`` whose rewards differ; see `fitted_classifier`.

    ``role`` is the word of errors for the model.
    """
    model, values = seeded(copied(unfitted), seed), None
    options, rows = weighing(model, weight, seed)
    target: Any = reward[rows]
    if hasattr(model, "predict_proba"):
        values, target = np.unique(target, return_inverse=True)
    try:
        model.fit(features[rows], target, **options)
    except Exception as error:
        raise InputError(
            f"the {role} {type(model).__name__} cannot be fitted to {len(reward)} rows "
            f"({one_line(error)}): change its parameters",
            parameter=role.replace(" ", "_"),
        ) from error
    return FittedRegressor(model, values)


def weighing(model: Any, weight: Floats, seed: int) -> tuple[dict[str, Floats], Any]:
    """Return how a model is fitted to weighted rows: options of its ``fit``, and which rows."""
    everything = slice(None)
    if np.all(weight == 1):
        return {}, everything
    argument = weight_argument(model)
    if argument is not None:
        return {argument: weight}, everything
    differ = not np.all(weight == weight[:1])
    return {}, resampled(weight, np.random.default_rng(seed)) if differ else everything


def weight_argument(model: Any) -> str | None:
    """Return the argument of ``fit`` for weights, of the last step of a pipeline; None without."""
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
    return np.minimum(rows, np.flatnonzero(weight)[-1])


def made(kind: Any, name: str, parameters: Mapping[str, Any]) -> Any:
    """Return the object of a class with these parameters, or raise an ``InputError``."""
    try:
        return kind(**parameters)
    except Exception as error:
        known = ", ".join(inspect.signature(kind).parameters) or "none"
        raise InputError(
            f"{name} cannot be made from parameters {dict(parameters)} ({one_line(error)}); its "
            f"parameters are {known}: change the parameters",
            parameter="parameters",
        ) from error


def _checked(classifier: Any) -> Any:
    methods = [getattr(classifier, name, None) for name in ("fit", "predict_proba")]
    if inspect.isclass(classifier) or not all(map(callable, methods)):
        raise InputError(
            f"classifier is {classifier!r:.80}, and it must be an object with the methods fit and "
            f"predict_proba, or a dotted name such as {EXAMPLE}: write Class() and not Class, or "
            "wrap the object in sklearn.calibration.CalibratedClassifierCV",
            parameter="classifier",
        )
    return classifier


def copied(classifier: Any) -> Any:
    """Return an unfitted copy."""
    if not hasattr(classifier, "get_params") or find_spec("sklearn") is None:
        return copy.deepcopy(classifier)
    from sklearn.base import clone

    return clone(classifier)


def seeded(model: Any, seed: int) -> Any:
    """Set every parameter ``random_state`` that is None to the seed."""
    if hasattr(model, "get_params"):
        unset = [
            name
            for name, value in model.get_params().items()
            if value is None and name.rpartition("__")[2] == "random_state"
        ]
        model.set_params(**dict.fromkeys(unset, seed))
    return model
