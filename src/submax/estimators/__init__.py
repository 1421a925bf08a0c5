"""Estimators: beliefs p(action | context, reward level), one a file."""

from typing import Any

from submax.core.conditioning.estimator import Estimator
from submax.core.folder import Folder

ESTIMATORS: Folder[Estimator[Any]] = Folder("submax.estimators", Estimator, "estimator")  # type: ignore[type-abstract]  # a contract is abstract


def __getattr__(name: str) -> Any:
    return ESTIMATORS.exported(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *(found.__name__ for found in ESTIMATORS.classes())])
