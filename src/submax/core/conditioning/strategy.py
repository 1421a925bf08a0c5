"""Contract of a strategy."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Self

from submax.core.arrays import Floats
from submax.core.conditioning.marginalization import mixture
from submax.core.conditioning.table import Table


class Strategy(ABC):
    """A decision rule: from the table of conditioned probabilities to the inference policy."""

    needs_values: ClassVar[bool] = False
    """Whether it reads ``table.values``; others may be given NaN there."""

    needs_table: ClassVar[bool] = False
    """Whether it must see the probability of every action; others work on actions drawn."""

    needs_experience: ClassVar[bool] = False
    """Whether it reads ``table.experience``; others may be given None there."""

    gives_lots: ClassVar[bool] = False
    """Whether decisions taken together are given out in lots, see ``draw_lots``."""

    @abstractmethod
    def weights(self, table: Table) -> Floats:
        """Weight of every reward level, ``[..., L]``; they may be negative."""

    def check_levels(self, levels: int) -> None:  # noqa: B027  # most take any number
        """Refuse so many reward levels, where the strategy is made for others."""

    def probabilities(self, table: Table) -> Floats:
        """The inference policy, ``[..., M]``: the weights mixed, clipped and normalized.

        A strategy that is not a set of weights overrides this step and nothing else.
        """
        return mixture(table, self.weights(table))

    @classmethod
    @abstractmethod
    def examples(cls) -> Iterator[Self]:
        """Instances that the conformance suite runs."""
