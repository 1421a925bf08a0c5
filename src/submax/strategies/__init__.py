"""Strategies: from conditioned probabilities to the inference policy, one a file."""

from typing import Any

from submax.core.conditioning.strategy import Strategy
from submax.core.registry import Registry

STRATEGIES: Registry[Strategy] = Registry(
    "submax.strategies",
    Strategy,  # type: ignore[type-abstract]  # a contract is abstract
    "strategy",
    {
        "advantage": ".advantage:Advantage",
        "clipped": ".clipped:Clipped",
        "iterated": ".iterated:Iterated",
        "linear-program": ".linear_program:LinearProgram",
        "optimistic": ".optimistic:Optimistic",
        "optimized": ".optimized:Optimized",
        "submax": ".submax:SubMax",
        "target": ".target:Target",
        "tilted": ".tilted:Tilted",
        "tracking": ".tracking:Tracking",
    },
)


def __getattr__(name: str) -> Any:
    return STRATEGIES.exported(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *STRATEGIES.class_names()])
