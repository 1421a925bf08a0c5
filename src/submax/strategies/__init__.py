"""Strategies: from conditioned probabilities to the inference policy, one a file."""

from submax.core.folder import Folder
from submax.core.strategy import Strategy

STRATEGIES: Folder[Strategy] = Folder("submax.strategies", Strategy, "strategy")  # type: ignore[type-abstract]  # a contract is abstract
