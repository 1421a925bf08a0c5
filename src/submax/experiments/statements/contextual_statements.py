"""The statements of section 4.2 of the paper, tested on the results of a sweep."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from submax.experiments.comparing.paired_comparison import (
    Finals,
    PairedComparison,
    Side,
    against_best,
    compared,
)
from submax.experiments.statements.claim import Claim
from submax.experiments.statements.quotes import IMPROVED
from submax.experiments.statements.statement import Statement

CLASSIC = [
    *(f"neural-epsilon-greedy-{epsilon}" for epsilon in (0.01, 0.05, 0.1, 0.2)),
    "dropout-thompson",
]
"""The paper's classic methods, with a value network."""
OTHERS = [*CLASSIC, "linucb", "linear-thompson", "neural-ucb", "neural-thompson"]
"""Those, and the baselines that are not in the paper."""
SHIFTS = (0, -2, -4)

Comparisons: TypeAlias = Callable[[Finals], Iterator[PairedComparison]]

DENSE = (
    "Section 4.2: while classic methods perform better in a dense reward setting, their "
    "performance degrade a lot when the rewards become sparse."
)
ROBUST = (
    "Section 4.2: RCPs, on the other side, are more robust to the sparsity in reward, rendering "
    "RCPs with SubMax being the best in the highest sparsity setup."
)


def _dense(finals: Finals) -> Iterator[PairedComparison]:
    yield from compared("s=0", finals.best(CLASSIC, shift=0), finals.final("rcp-submax", shift=0))


def _degrade(finals: Finals) -> Iterator[PairedComparison]:
    for policy in CLASSIC:
        yield from compared(policy, _relative(finals, policy, 0), _relative(finals, policy, -4))


def _robust(policy: str) -> Comparisons:
    """Compare the regret relative to random that is added from s=0 to s=-4."""

    def comparisons(finals: Finals) -> Iterator[PairedComparison]:
        dense, sparse = finals.best(CLASSIC, shift=0), finals.best(CLASSIC, shift=-4)
        if dense is not None and sparse is not None:
            own = _added(_relative(finals, policy, 0), _relative(finals, policy, -4))
            rival = _added(_relative(finals, dense.name, 0), _relative(finals, sparse.name, -4))
            yield from compared(
                "added share of random's regret",
                None if own is None else Side(policy, own.values),
                None if rival is None else Side("best classic", rival.values),
            )

    return comparisons


def _sparse(finals: Finals) -> Iterator[PairedComparison]:
    rivals = [*CLASSIC, "rcp-optimistic", "random"]
    yield from against_best(finals, "s=-4", "rcp-submax", rivals, {"shift": -4})


def _sparse_all(finals: Finals) -> Iterator[PairedComparison]:
    yield from against_best(finals, "s=-4", "rcp-submax", OTHERS, {"shift": -4})


def _less(lower: str, higher: str) -> Comparisons:
    def comparisons(finals: Finals) -> Iterator[PairedComparison]:
        for shift in SHIFTS:
            left, right = finals.final(lower, shift=shift), finals.final(higher, shift=shift)
            yield from compared(f"s={shift}", left, right)

    return comparisons


def _two_thirds(finals: Finals) -> Iterator[PairedComparison]:
    for shift in SHIFTS[:2]:
        random = finals.final("random", shift=shift)
        less = None if random is None else Side("2/3 random", random.values * 2 / 3)
        yield from compared(f"s={shift}", finals.final("rcp-submax", shift=shift), less)


def _relative(finals: Finals, policy: str, shift: int) -> Side | None:
    """The regret as a share of the mean regret of random choice."""
    found, random = finals.final(policy, shift=shift), finals.final("random", shift=shift)
    if found is None or random is None or random.values.mean() <= 0:
        return None
    return Side(f"{policy} s={shift}", found.values / random.values.mean())


def _added(dense: Side | None, sparse: Side | None) -> Side | None:
    if dense is None or sparse is None:
        return None
    return Side(sparse.name, sparse.values - dense.values)


CLAIMS = [
    Claim("paper", DENSE, "The best classic method has less regret than SubMax at s=0", 1, _dense),
    Claim(
        "paper",
        DENSE,
        "Classic methods lose, relative to random, from s=0 to s=-4",
        len(CLASSIC),
        _degrade,
    ),
    Claim(
        "paper",
        ROBUST,
        "SubMax loses less than the best classic method does",
        1,
        _robust("rcp-submax"),
    ),
    Claim(
        "paper",
        ROBUST,
        "Optimistic loses less than the best classic method does",
        1,
        _robust("rcp-optimistic"),
    ),
    Claim("paper", ROBUST, "SubMax is the best method of the paper at s=-4", 1, _sparse),
    Claim(
        "paper",
        IMPROVED,
        "SubMax has less regret than optimistic",
        len(SHIFTS),
        _less("rcp-submax", "rcp-optimistic"),
    ),
    Claim("submax", "", "SubMax is also ahead of the other baselines at s=-4", 1, _sparse_all),
    Claim(
        "submax",
        "",
        "Optimized, which the paper does not run here, has less regret than optimistic",
        len(SHIFTS),
        _less("rcp-optimized", "rcp-optimistic"),
    ),
    Claim(
        "submax", "", "SubMax has less than two thirds of random's regret (s=0, -2)", 2, _two_thirds
    ),
]
"""What is tested: first the statements of the paper, then ours."""


def contextual_statements(finals: Finals) -> list[Statement]:
    """The statements of section 4.2, each with its comparisons."""
    return [claim.tested(finals) for claim in CLAIMS]
