"""Estimators: beliefs p(action | context, reward level)."""

from typing import Any

from submax.core.conditioning import Estimator
from submax.core.optional import lazy_names
from submax.core.registry import Registry

ESTIMATORS: Registry[Estimator[Any]] = Registry(
    "submax.estimators",
    Estimator,  # type: ignore[type-abstract]  # a contract is abstract
    "estimator",
    {
        "classifier": "submax.estimators.classifier:Classifier",
        "counting": "submax.estimators.counting:Counting",
        "cvae": "submax.estimators.network:CVAE",
        "softmax": "submax.estimators.network:Softmax",
    },
)


__all__ = ["ESTIMATORS", *ESTIMATORS.class_names()]
__getattr__, __dir__ = lazy_names(__name__, ESTIMATORS.modules(), __all__)
