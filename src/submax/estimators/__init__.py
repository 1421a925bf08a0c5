"""Estimators: beliefs p(action | context, reward level), one a file."""

from typing import Any

from submax.core.conditioning.estimator import Estimator
from submax.core.registry import Registry

ESTIMATORS: Registry[Estimator[Any]] = Registry(
    "submax.estimators",
    Estimator,  # type: ignore[type-abstract]  # a contract is abstract
    "estimator",
    {
        "autoregressive": ".sequential.autoregressive:Autoregressive",
        "bayesian-features": ".bayesian_features:BayesianFeatures",
        "classifier": ".classifier:Classifier",
        "counting": ".counting:Counting",
        "cvae": ".cvae:CVAE",
        "denoising": ".denoising.denoising:Denoising",
        "softmax": ".softmax:Softmax",
        "variational-continual": ".continual.variational_continual:VariationalContinual",
    },
)


def __getattr__(name: str) -> Any:
    return ESTIMATORS.exported(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *ESTIMATORS.class_names()])
