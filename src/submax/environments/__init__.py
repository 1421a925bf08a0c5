"""Environments: distributions over hidden worlds, in which policies are simulated."""

from typing import Any

from submax.core.contracts.environment import Environment
from submax.core.folder import Folder

ENVIRONMENTS: Folder[Environment[Any]] = Folder(
    "submax.environments",
    Environment,  # type: ignore[type-abstract]  # a contract is abstract
    "environment",
)


def __getattr__(name: str) -> Any:
    return ENVIRONMENTS.exported(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *(found.__name__ for found in ENVIRONMENTS.classes())])
