"""The contract of policies that rank items."""

from abc import ABC, abstractmethod

from submax.core.arrays import Floats, Integers


class RankingPolicy(ABC):
    """Fills the positions of a slate from the top; M is the number of items."""

    @abstractmethod
    def conditional(self, item: Integers) -> Floats:
        """Return the probability of every item at every position, ``[n, K, M]``.

        It is given the items above the position, which are those of the slates ``item [n, K]``.
        """

    @abstractmethod
    def marginal(self, slates: int, positions: int) -> Floats | None:
        """Return the probability of every item at every position whatever is above it.

        ``[n, K, M]``, or ``[1, K, M]`` if it is the same for all slates. None if this would take
        too long to compute.
        """
