"""A claim that results can test."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from submax.experiments.comparing.paired_comparison import Finals, PairedComparison
from submax.experiments.statements.statement import Source, Statement


class Claim(NamedTuple):
    """A statement before it is tested.

    ``comparisons`` yields one comparison for every configuration whose cells were run; ``wanted``
    is how many there are if all were run. The other fields are those of `Statement`.
    """

    source: Source
    quote: str
    text: str
    wanted: int
    comparisons: Callable[[Finals], Iterable[PairedComparison]]

    def tested(self, finals: Finals) -> Statement:
        """Return the statement with its comparisons on these results."""
        return Statement(*self[:4], list(self.comparisons(finals)))
