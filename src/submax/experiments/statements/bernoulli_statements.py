"""The statements of section 4.1 of the paper, checked against the results of a sweep."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from submax.experiments.paired_comparison import (
    Finals,
    PairedComparison,
    Side,
    against_best,
    compared,
)
from submax.experiments.statements.statement import Statement

EPSILON_GREEDY = [f"epsilon-greedy-{epsilon}" for epsilon in (0.01, 0.05, 0.1, 0.2)]
THOMPSON = [f"thompson-1-{beta}" for beta in (1, 9, 99)]
CLASSIC = [*EPSILON_GREEDY, "ucb1", *THOMPSON]
OTHERS = ["random", *CLASSIC, "rcp-optimistic", "rcp-optimized"]
"""The policies of the paper's comparison, SubMax aside."""

ARMS, BETAS, DELAYS = (10, 100, 500), (1, 9, 99), (100, 500, 1000)


def bernoulli_statements(finals: Finals) -> list[Statement]:
    """The statements of section 4.1, each with its comparisons."""
    return [
        Statement(text, list(comparisons(finals)))
        for text, comparisons in (
            (
                "Classic methods lose, relative to random, from K=10 to 500 (Beta(1,9), N_b=100)",
                _degrade,
            ),
            ("... except Thompson sampling with the true prior", _true_prior_does_not_degrade),
            ("SubMax is best for every K (Beta(1,9), N_b=100)", _best_for_every_k),
            ("SubMax is best for every delay but the longest (K=100, Beta(1,9))", _short_delay),
            ("Thompson sampling is ahead of SubMax at N_b=1000 (K=100, Beta(1,9))", _long_delay),
            ("... and SubMax then gains on it: less regret a decision at the end", _slope),
            ("Thompson with the true prior is the best classic method (K=100, N_b=100)", _prior),
            ("ε-greedy is ahead of SubMax at Beta(1,99) (K=100, N_b=100)", _sparse),
            ("Thompson with the true prior is ahead of SubMax at Beta(1,1)", _ahead(beta=1)),
            ("Thompson with the true prior is ahead of SubMax at N_b=1000", _ahead(delay=1000)),
            ("SubMax has less regret than optimized", _everywhere("rcp-submax", "rcp-optimized")),
            (
                "Optimized has less regret than optimistic",
                _everywhere("rcp-optimized", "rcp-optimistic"),
            ),
            ("Optimistic has less regret than random", _everywhere("rcp-optimistic", "random")),
            ("SubMax is nearest to the best of each configuration, on average", _most_competitive),
        )
    ]


def _degrade(finals: Finals) -> Iterator[PairedComparison]:
    for policy in [name for name in CLASSIC if name != "thompson-1-9"]:
        yield from compared(policy, _relative(finals, policy, 10), _relative(finals, policy, 500))


def _true_prior_does_not_degrade(finals: Finals) -> Iterator[PairedComparison]:
    policy = "thompson-1-9"
    yield from compared(policy, _relative(finals, policy, 500), _relative(finals, policy, 10))


def _relative(finals: Finals, policy: str, arms: int) -> Side | None:
    """The regret over the mean regret of random choice, which grows with K as well."""
    found = finals.final(policy, arms=arms, beta=9, delay=100)
    random = finals.final("random", arms=arms, beta=9, delay=100)
    if found is None or random is None or random.values.mean() <= 0:
        return None
    return Side(f"K={arms}", found.values / random.values.mean())


def _best_for_every_k(finals: Finals) -> Iterator[PairedComparison]:
    for arms in ARMS:
        labels = {"arms": arms, "beta": 9, "delay": 100}
        yield from against_best(finals, _words(labels), "rcp-submax", OTHERS, labels)


def _short_delay(finals: Finals) -> Iterator[PairedComparison]:
    for delay in DELAYS[:2]:
        labels = {"arms": 100, "beta": 9, "delay": delay}
        yield from against_best(finals, _words(labels), "rcp-submax", OTHERS, labels)


def _long_delay(finals: Finals) -> Iterator[PairedComparison]:
    labels = {"arms": 100, "beta": 9, "delay": 1000}
    yield from compared(
        _words(labels), finals.best(THOMPSON, **labels), finals.final("rcp-submax", **labels)
    )


def _slope(finals: Finals) -> Iterator[PairedComparison]:
    labels = {"arms": 100, "beta": 9, "delay": 1000}
    best = finals.best(THOMPSON, **labels)
    if best is not None:
        yield from compared(
            _words(labels), finals.late("rcp-submax", **labels), finals.late(best.name, **labels)
        )


def _prior(finals: Finals) -> Iterator[PairedComparison]:
    for beta in BETAS:
        true = f"thompson-1-{beta}"
        rivals = [name for name in CLASSIC if name != true]
        labels = {"arms": 100, "beta": beta, "delay": 100}
        yield from against_best(finals, _words(labels), true, rivals, labels)


def _ahead(**fixed: int) -> Callable[[Finals], Iterator[PairedComparison]]:
    def comparisons(finals: Finals) -> Iterator[PairedComparison]:
        for labels in finals.configurations():
            if fixed.items() <= labels.items():
                true = finals.final(f"thompson-1-{labels['beta']}", **labels)
                yield from compared(_words(labels), true, finals.final("rcp-submax", **labels))

    return comparisons


def _sparse(finals: Finals) -> Iterator[PairedComparison]:
    labels = {"arms": 100, "beta": 99, "delay": 100}
    yield from compared(
        _words(labels),
        finals.best(EPSILON_GREEDY, **labels),
        finals.final("rcp-submax", **labels),
    )


def _everywhere(lower: str, higher: str) -> Callable[[Finals], Iterator[PairedComparison]]:
    def comparisons(finals: Finals) -> Iterator[PairedComparison]:
        for labels in finals.configurations():
            left, right = finals.final(lower, **labels), finals.final(higher, **labels)
            yield from compared(_words(labels), left, right)

    return comparisons


def _most_competitive(finals: Finals) -> Iterator[PairedComparison]:
    """Compare means over configurations of the regret over that of the best policy."""
    ratios: dict[str, list[float]] = {}
    for labels in finals.configurations():
        best = finals.best([*OTHERS, "rcp-submax"], **labels)
        if best is None or best.values.mean() <= 0:
            return
        for policy in [*OTHERS, "rcp-submax"]:
            side = finals.final(policy, **labels)
            if side is not None:
                ratios.setdefault(policy, []).append(side.values.mean() / best.values.mean())
    if ratios:
        submax = ratios.pop("rcp-submax")
        rival = min(ratios, key=lambda policy: float(np.mean(ratios[policy])))
        left, right = Side("rcp-submax", np.array(submax)), Side(rival, np.array(ratios[rival]))
        yield PairedComparison.of("regret / lowest regret", left, right)


def _words(labels: dict[str, Any]) -> str:
    symbols = {"arms": "K", "beta": "β", "delay": "N_b"}
    return ", ".join(f"{symbol}={labels[key]}" for key, symbol in symbols.items())
