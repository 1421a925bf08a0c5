"""The contract of policies that rank items."""

from abc import ABC, abstractmethod

from submax.core.arrays import Floats, Integers


class RankingPolicy(ABC):
    """Fills the positions of a slate from the top.

    In shapes, n is the number of slates, K that of positions and M that of items.
    """

    @abstractmethod
    def conditional(self, item: Integers) -> Floats:
        """Return the probability of every item at every position, ``[n, K, M]``.

        The probabilities at a position are conditional on the items above it, which are taken from
        the slates ``item [n, K]``.
        """

    @abstractmethod
    def marginal(self, slates: int, positions: int) -> Floats | None:
        """Return the marginal probability of every item at every position.

        ``[n, K, M]``, or ``[1, K, M]`` if it is the same for all slates. None if this would take
        too long to compute.
        """
