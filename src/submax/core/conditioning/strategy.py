"""Contract of a strategy."""

from abc import ABC, abstractmethod
from typing import ClassVar

from submax.core.arrays import Floats
from submax.core.conditioning.strategy_facts import StrategyFacts
from submax.core.conditioning.table import Table


class Strategy(ABC):
    """A decision rule: from the table of conditioned probabilities to the inference policy.

    A strategy that is a set of weights, one for each reward level, is a `WeightedStrategy`.
    """

    facts: ClassVar[StrategyFacts] = StrategyFacts(needs_listing=True)
    """What a policy has to provide for the strategy."""

    @abstractmethod
    def probabilities(self, table: Table) -> Floats:
        """Return the probability of every action: ``[..., L, M] -> [..., M]``."""

    def check_levels(self, levels: int) -> None:  # noqa: B027  # most take any number
        """Raise an InputError if the strategy cannot work with this number of reward levels."""
