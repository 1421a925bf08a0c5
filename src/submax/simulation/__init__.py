"""Simulations of a policy in an environment with delayed rewards, and sweeps of simulations."""

from submax.core.optional import lazy_names
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
__getattr__, __dir__ = lazy_names(__name__, DELAYS.modules(), __all__)
