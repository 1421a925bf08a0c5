"""Simulations of a policy in an environment with delayed rewards, and sweeps of simulations."""

from typing import Any

from submax.core.folder import Folder
from submax.simulation.delay import Delay

DELAYS: Folder[Delay] = Folder("submax.simulation", Delay, "delay")  # type: ignore[type-abstract]  # a contract is abstract


def __getattr__(name: str) -> Any:
    return DELAYS.exported(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *(found.__name__ for found in DELAYS.classes())])
