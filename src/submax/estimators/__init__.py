"""Estimators: beliefs p(action | context, reward level), one a file."""

from typing import Any

from submax.core.conditioning.estimator import Estimator
from submax.core.registry import Registry

ESTIMATORS: Registry[Estimator[Any]] = Registry(
    "submax.estimators",
    Estimator,  # type: ignore[type-abstract]  # a contract is abstract
    "estimator",
    {
        "autoregressive": "submax.estimators.sequential.autoregressive:Autoregressive",
        "bayesian-features": "submax.estimators.bayesian_features:BayesianFeatures",
        "classifier": "submax.estimators.classifier:Classifier",
        "counting": "submax.estimators.counting:Counting",
        "cvae": "submax.estimators.cvae:CVAE",
        "denoising": "submax.estimators.denoising.denoising:Denoising",
        "softmax": "submax.estimators.softmax:Softmax",
        "variational-continual": "submax.estimators.continual.variational_continual:VariationalContinual",
    },
)


def __getattr__(name: str) -> Any:
    return ESTIMATORS.exported(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *ESTIMATORS.class_names()])
