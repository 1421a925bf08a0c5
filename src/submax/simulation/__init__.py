"""Simulations of a policy in an environment with delayed rewards, and sweeps of simulations."""

from typing import Any

from submax.core.registry import Registry
from submax.simulation.delays import Delay

DELAYS: Registry[Delay] = Registry(
    "submax.simulation",
    Delay,  # type: ignore[type-abstract]  # a contract is abstract
    "delay",
    {
        "batched-rewards": "submax.simulation.delays:BatchedRewards",
        "geometric": "submax.simulation.delays:Geometric",
        "lag": "submax.simulation.delays:Lag",
    },
)

__all__ = ["DELAYS", *DELAYS.class_names()]


def __getattr__(name: str) -> Any:
    return DELAYS.exported(name)


def __dir__() -> list[str]:
    return sorted(__all__)
