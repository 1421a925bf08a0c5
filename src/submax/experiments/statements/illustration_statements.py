"""The statements of section 3.3 of the paper, tested on the results of the illustration."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from submax.experiments.comparing.paired_comparison import PairedComparison, Side, compared
from submax.experiments.statements.statement import Statement
from submax.experiments.storing.results import FINAL_TABLE
from submax.simulation.running.result_table import ResultTable

RANDOM = (
    "Section 3.3: all policies except the 0-reward policy or negative policy achieves better than "
    "random expected reward."
)
ORDER = (
    "Section 3.3: the optimistic policy, equivalently the 1-conditioned policy, which does not use "
    "the negative policy, is the worst among the rest. Optimized policy perform better than the "
    "optimistic one […]. Unexpectedly, the SubMax policy works the best."
)
ZEROED = (
    'Section 3.3: the optimized policy […] in general can only "zero out" one action […], while '
    "the SubMax operation can potentially zero out more."
)


def illustration_statements(directory: Path) -> list[Statement]:
    """Return the statements of section 3.3, each with its comparisons of two policies.

    The values are means over environments. Each comparison has the policy on the left that should
    have the lower mean.
    """
    rewards, zeroed = (_sides(directory, name) for name in ("expected_reward", "zeroed_actions"))
    names = ["rcp-optimistic", "rcp-optimized", "rcp-submax"]
    zeros = "actions with probability 0"
    return [
        Statement(
            "paper",
            RANDOM,
            "The negative policy earns less than random, the three others more",
            wanted=4,
            comparisons=[
                *_ordered(rewards, ["rcp-negative", "random"]),
                *(one for name in names for one in _ordered(rewards, ["random", name])),
            ],
        ),
        Statement(
            "paper",
            ORDER,
            "Expected reward rises from optimistic to optimized to SubMax",
            wanted=2,
            comparisons=list(_ordered(rewards, names)),
        ),
        Statement(
            "paper",
            ZEROED,
            "The optimized policy zeroes fewer actions than SubMax",
            wanted=1,
            comparisons=list(
                compared(zeros, zeroed.get("rcp-optimized"), zeroed.get("rcp-submax"))
            ),
        ),
    ]


def _sides(directory: Path, column: str) -> dict[str, Side]:
    """Return the values of every policy in all environments, as sides of comparisons."""
    policies = ResultTable.read(directory, FINAL_TABLE).by_policy()
    return {name: Side(name, rows[column]) for name, rows in policies.items()}


def _ordered(sides: dict[str, Side], names: Sequence[str]) -> Iterator[PairedComparison]:
    """Compare the expected rewards of neighbours in ``names``, which should rise."""
    for lower, higher in pairwise(names):
        yield from compared("expected reward", sides.get(lower), sides.get(higher))
