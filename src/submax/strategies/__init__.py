"""Strategies: from conditioned probabilities to the inference policy."""

from submax.core.conditioning import Strategy
from submax.core.optional import lazy_names
from submax.core.registry import Registry

STRATEGIES: Registry[Strategy] = Registry(
    "submax.strategies",
    Strategy,  # type: ignore[type-abstract]  # a contract is abstract
    "strategy",
    {
        "advantage": "submax.strategies.weighted:Advantage",
        "clipped": "submax.strategies.weighted:Clipped",
        "iterated": "submax.strategies.iterated:Iterated",
        "optimistic": "submax.strategies.weighted:Optimistic",
        "optimized": "submax.strategies.weighted:Optimized",
        "submax": "submax.strategies.weighted:SubMax",
        "target": "submax.strategies.weighted:Target",
        "tilted": "submax.strategies.weighted:Tilted",
        "tracking": "submax.strategies.tracking:Tracking",
    },
)


__all__ = ["STRATEGIES", *STRATEGIES.class_names()]
__getattr__, __dir__ = lazy_names(__name__, STRATEGIES.modules(), __all__)
