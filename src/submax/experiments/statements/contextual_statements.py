"""The statements of section 4.2 of the paper, checked against the results of a sweep."""

from collections.abc import Iterator

from submax.experiments.paired_comparison import (
    Finals,
    PairedComparison,
    Side,
    against_best,
    compared,
)
from submax.experiments.statements.statement import Statement

CLASSIC = [
    *(f"neural-epsilon-greedy-{epsilon}" for epsilon in (0.01, 0.05, 0.1, 0.2)),
    "dropout-thompson",
]
"""The paper's classic methods, on a value network."""
OTHERS = [*CLASSIC, "linucb", "linear-thompson", "neural-ucb", "neural-thompson"]
SHIFTS = (0, -2, -4)


def contextual_statements(finals: Finals) -> list[Statement]:
    """The statements of section 4.2, each with its comparisons."""
    return [
        Statement(text, list(comparisons(finals)))
        for text, comparisons in (
            ("Classic methods do better than SubMax where rewards are dense (s=0)", _dense),
            ("They degrade, relative to random, as rewards become sparse (s=0 to -4)", _degrade),
            ("... and SubMax degrades less than the best of them", _robust),
            ("SubMax is best of the paper's methods at the highest sparsity (s=-4)", _sparse),
            ("SubMax is also ahead of every other baseline at s=-4", _sparse_all),
            ("SubMax has less regret than optimistic", _submax_optimistic),
            ("Optimized has less regret than optimistic", _optimized_optimistic),
            ("SubMax has less than two thirds of random's regret (s=0, -2)", _third),
        )
    ]


def _dense(finals: Finals) -> Iterator[PairedComparison]:
    yield from compared("s=0", finals.best(CLASSIC, shift=0), finals.final("rcp-submax", shift=0))


def _degrade(finals: Finals) -> Iterator[PairedComparison]:
    for policy in CLASSIC:
        yield from compared(policy, _relative(finals, policy, 0), _relative(finals, policy, -4))


def _robust(finals: Finals) -> Iterator[PairedComparison]:
    """Compare how much the regret relative to random grows from s=0 to s=-4."""
    dense, sparse = finals.best(CLASSIC, shift=0), finals.best(CLASSIC, shift=-4)
    if dense is not None and sparse is not None:
        submax = _added(_relative(finals, "rcp-submax", 0), _relative(finals, "rcp-submax", -4))
        rival = _added(_relative(finals, dense.name, 0), _relative(finals, sparse.name, -4))
        yield from compared(
            "added share of random's regret",
            None if submax is None else Side("rcp-submax", submax.values),
            None if rival is None else Side("best classic", rival.values),
        )


def _sparse(finals: Finals) -> Iterator[PairedComparison]:
    rivals = [*CLASSIC, "rcp-optimistic", "random"]
    yield from against_best(finals, "s=-4", "rcp-submax", rivals, {"shift": -4})


def _sparse_all(finals: Finals) -> Iterator[PairedComparison]:
    yield from against_best(finals, "s=-4", "rcp-submax", OTHERS, {"shift": -4})


def _submax_optimistic(finals: Finals) -> Iterator[PairedComparison]:
    for shift in SHIFTS:
        left, right = (finals.final(name, shift=shift) for name in ("rcp-submax", "rcp-optimistic"))
        yield from compared(f"s={shift}", left, right)


def _optimized_optimistic(finals: Finals) -> Iterator[PairedComparison]:
    for shift in SHIFTS:
        left, right = (
            finals.final(name, shift=shift) for name in ("rcp-optimized", "rcp-optimistic")
        )
        yield from compared(f"s={shift}", left, right)


def _third(finals: Finals) -> Iterator[PairedComparison]:
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
