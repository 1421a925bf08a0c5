"""Strategies: from conditioned probabilities to the inference policy, one a file."""

from typing import Any

from submax.core.conditioning.strategy import Strategy
from submax.core.registry import Registry

STRATEGIES: Registry[Strategy] = Registry(
    "submax.strategies",
    Strategy,  # type: ignore[type-abstract]  # a contract is abstract
    "strategy",
    {
        "advantage": "submax.strategies.advantage:Advantage",
        "clipped": "submax.strategies.clipped:Clipped",
        "iterated": "submax.strategies.iterated:Iterated",
        "linear-program": "submax.strategies.linear_program:LinearProgram",
        "optimistic": "submax.strategies.optimistic:Optimistic",
        "optimized": "submax.strategies.optimized:Optimized",
        "submax": "submax.strategies.submax:SubMax",
        "target": "submax.strategies.target:Target",
        "tilted": "submax.strategies.tilted:Tilted",
        "tracking": "submax.strategies.tracking:Tracking",
    },
)


def __getattr__(name: str) -> Any:
    return STRATEGIES.exported(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *STRATEGIES.class_names()])
