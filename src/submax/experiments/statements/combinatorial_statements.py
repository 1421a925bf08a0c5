"""The statements of section 4.3 of the paper, tested on the results of a sweep."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from submax.experiments.comparing.paired_comparison import Finals, PairedComparison, compared
from submax.experiments.statements.claim import Claim
from submax.experiments.statements.statement import Statement

CLASSIC = [
    *(f"climbing-epsilon-greedy-{epsilon}" for epsilon in (0.01, 0.05, 0.1, 0.2)),
    "climbing-dropout-thompson",
]
"""The paper's classic methods with a value network; they search joint actions by hill climbing."""

Comparisons: TypeAlias = Callable[[Finals], Iterator[PairedComparison]]

CHANCE = (
    "Section 4.3: RCPs with both strategies can be successfully applied to this MAB setting with "
    "an action space of cardinality 32768, yielding better than chance performance."
)
BETWEEN = (
    "Section 4.3: Between the two strategies, the SubMax strategy still consistently works better "
    "than the optimistic strategy."
)
OUTPERFORM = (
    "Introduction: on MAB with large action spaces and sparse reward signals, we show that RCPs "
    "implemented by conditional variational autoencoders (CVAEs) with the proposed techniques can "
    "outperform classic methods (section 4.3, which has no classic method)."
)


def _earns_more(higher: str, lower: str) -> Comparisons:
    return _earns_more_than_best(higher, [lower])


def _earns_more_than_best(higher: str, rivals: list[str]) -> Comparisons:
    def comparisons(finals: Finals) -> Iterator[PairedComparison]:
        for labels in finals.configurations():
            sides = [finals.reward(name, **labels) for name in rivals]
            run = [side for side in sides if side is not None]
            if len(run) == len(sides):
                best = max(run, key=lambda side: float(side.values.mean()))
                yield from compared("accumulated reward", best, finals.reward(higher, **labels))

    return comparisons


CLAIMS = [
    Claim(
        "paper",
        CHANCE,
        "Optimistic earns more than chance",
        1,
        _earns_more("rcp-optimistic", "random"),
    ),
    Claim("paper", CHANCE, "SubMax earns more than chance", 1, _earns_more("rcp-submax", "random")),
    Claim(
        "paper",
        BETWEEN,
        "SubMax earns more than optimistic",
        1,
        _earns_more("rcp-submax", "rcp-optimistic"),
    ),
    Claim(
        "paper",
        OUTPERFORM,
        "SubMax earns more than the best of neural ε-greedy and dropout Thompson",
        1,
        _earns_more_than_best("rcp-submax", CLASSIC),
    ),
    Claim(
        "submax",
        "",
        "SubMax earns more than hill climbing with Thompson sampling",
        1,
        _earns_more("rcp-submax", "hill-climbing-thompson"),
    ),
    Claim(
        "submax",
        "",
        "The default rcp-adaptive earns more than SubMax with a CVAE",
        1,
        _earns_more("rcp-adaptive", "rcp-submax"),
    ),
]
"""What is tested: first the statements of the paper, then ours."""


def combinatorial_statements(finals: Finals) -> list[Statement]:
    """Return the statements of section 4.3, tested by the accumulated rewards of policies.

    Each comparison has the policy on the left that should earn less.
    """
    return [claim.tested(finals) for claim in CLAIMS]
