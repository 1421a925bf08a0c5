"""Contract of a strategy that weights the reward levels."""

from abc import abstractmethod
from typing import ClassVar

from submax.core.arrays import Floats
from submax.core.conditioning.marginalization import mixture
from submax.core.conditioning.strategy import Strategy
from submax.core.conditioning.strategy_facts import StrategyFacts
from submax.core.conditioning.table import Table


class WeightedStrategy(Strategy):
    """Generalized marginalization: π‡(a) ∝ max(Σ_l w_l π(a | l), 0), with weights of any sign.

    Unless its facts say that it needs a listing, the weights must not depend on
    ``table.probabilities``. Then actions can be drawn by rejection without being listed.

    Reference: Xu et al. (2024), equation gm-inference.
    """

    facts: ClassVar[StrategyFacts] = StrategyFacts()

    @abstractmethod
    def weights(self, table: Table) -> Floats:
        """Return the weight of every reward level, ``[..., L]``; weights may be negative."""

    def probabilities(self, table: Table) -> Floats:
        return mixture(table, self.weights(table))
