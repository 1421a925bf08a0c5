"""Strategies: from conditioned probabilities to the inference policy, one a file."""

from typing import Any

from submax.core.conditioning.strategy import Strategy
from submax.core.folder import Folder

STRATEGIES: Folder[Strategy] = Folder("submax.strategies", Strategy, "strategy")  # type: ignore[type-abstract]  # a contract is abstract


def __getattr__(name: str) -> Any:
    return STRATEGIES.exported(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *(found.__name__ for found in STRATEGIES.classes())])
