"""The statements of section 4.3 of the paper, checked against the results of a sweep."""

from collections.abc import Callable, Iterator

from submax.experiments.paired_comparison import Finals, PairedComparison, compared
from submax.experiments.statements.statement import Statement


def combinatorial_statements(finals: Finals) -> list[Statement]:
    """The statements of section 4.3, compared by reward: the policy that earns less is left."""
    return [
        Statement(text, list(comparisons(finals)))
        for text, comparisons in (
            ("Optimistic earns more than chance", _earns_more("rcp-optimistic", "random")),
            ("SubMax earns more than chance", _earns_more("rcp-submax", "random")),
            ("SubMax earns more than optimistic", _earns_more("rcp-submax", "rcp-optimistic")),
            (
                "SubMax earns more than hill climbing (not in the paper)",
                _earns_more("rcp-submax", "hill-climbing-thompson"),
            ),
        )
    ]


def _earns_more(higher: str, lower: str) -> Callable[[Finals], Iterator[PairedComparison]]:
    def comparisons(finals: Finals) -> Iterator[PairedComparison]:
        for labels in finals.configurations():
            left, right = finals.reward(lower, **labels), finals.reward(higher, **labels)
            yield from compared("accumulated reward", left, right)

    return comparisons
