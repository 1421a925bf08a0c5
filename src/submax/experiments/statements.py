"""What section 4.1 of the paper says, put to the test on the results of a sweep."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from submax.experiments.comparison import Comparison, Regrets, Side
from submax.experiments.directory import write_csv

EPSILON_GREEDY = [f"epsilon-greedy-{epsilon}" for epsilon in (0.01, 0.05, 0.1, 0.2)]
THOMPSON = [f"thompson-1-{beta}" for beta in (1, 9, 99)]
CLASSIC = [*EPSILON_GREEDY, "ucb1", *THOMPSON]
OTHERS = ["random", *CLASSIC, "rcp-optimistic", "rcp-optimized"]
"""The policies of the paper's comparison, SubMax aside."""

ARMS, BETAS, DELAYS = (10, 100, 500), (1, 9, 99), (100, 500, 1000)


class Statement(NamedTuple):
    """A sentence and the comparisons that decide it; none where cells are missing."""

    text: str
    comparisons: list[Comparison]

    @property
    def held(self) -> int:
        """In how many comparisons the left number is lower, as the sentence says."""
        return sum(comparison.holds for comparison in self.comparisons)

    @property
    def closest(self) -> Comparison:
        """The comparison that speaks least for the sentence."""
        tiny = 1e-300
        return max(
            self.comparisons,
            key=lambda one: (one.left_mean - one.right_mean) / max(abs(one.right_mean), tiny),
        )


def bernoulli_statements(regrets: Regrets) -> list[Statement]:
    """The statements of section 4.1, each with its numbers."""
    return [
        Statement(text, list(comparisons(regrets)))
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


def write_statements(directory: Path, statements: Sequence[Statement]) -> None:
    """Write every comparison with both its numbers."""
    rows = [
        {
            "statement": statement.text,
            "where": one.where,
            "left": one.left,
            "left_mean": one.left_mean,
            "right": one.right,
            "right_mean": one.right_mean,
            "standard_error_of_difference": one.error,
            "holds": one.holds,
            "closest": one == statement.closest,
        }
        for statement in statements
        for one in statement.comparisons
    ]
    if rows:
        write_csv(directory / "statements.csv", rows)


def _degrade(regrets: Regrets) -> Iterator[Comparison]:
    for policy in [name for name in CLASSIC if name != "thompson-1-9"]:
        yield from _compared(
            policy, _relative(regrets, policy, 10), _relative(regrets, policy, 500)
        )


def _true_prior_does_not_degrade(regrets: Regrets) -> Iterator[Comparison]:
    policy = "thompson-1-9"
    yield from _compared(policy, _relative(regrets, policy, 500), _relative(regrets, policy, 10))


def _relative(regrets: Regrets, policy: str, arms: int) -> Side | None:
    """Regret relative to that of random choice, which grows with K as well."""
    found = regrets.final(policy, arms=arms, beta=9, delay=100)
    random = regrets.final("random", arms=arms, beta=9, delay=100)
    if found is None or random is None or random.values.mean() <= 0:
        return None
    return Side(f"K={arms}", found.values / random.values.mean())


def _best_for_every_k(regrets: Regrets) -> Iterator[Comparison]:
    for arms in ARMS:
        yield from _against_best(regrets, "rcp-submax", OTHERS, arms=arms, beta=9, delay=100)


def _short_delay(regrets: Regrets) -> Iterator[Comparison]:
    for delay in DELAYS[:2]:
        yield from _against_best(regrets, "rcp-submax", OTHERS, arms=100, beta=9, delay=delay)


def _long_delay(regrets: Regrets) -> Iterator[Comparison]:
    labels = {"arms": 100, "beta": 9, "delay": 1000}
    yield from _compared(
        _words(labels), regrets.best(THOMPSON, **labels), regrets.final("rcp-submax", **labels)
    )


def _slope(regrets: Regrets) -> Iterator[Comparison]:
    labels = {"arms": 100, "beta": 9, "delay": 1000}
    best = regrets.best(THOMPSON, **labels)
    if best is not None:
        yield from _compared(
            _words(labels), regrets.late("rcp-submax", **labels), regrets.late(best.name, **labels)
        )


def _prior(regrets: Regrets) -> Iterator[Comparison]:
    for beta in BETAS:
        true = f"thompson-1-{beta}"
        rivals = [name for name in CLASSIC if name != true]
        yield from _against_best(regrets, true, rivals, arms=100, beta=beta, delay=100)


def _ahead(**fixed: int) -> Callable[[Regrets], Iterator[Comparison]]:
    def comparisons(regrets: Regrets) -> Iterator[Comparison]:
        for labels in regrets.configurations():
            if fixed.items() <= labels.items():
                true = regrets.final(f"thompson-1-{labels['beta']}", **labels)
                yield from _compared(_words(labels), true, regrets.final("rcp-submax", **labels))

    return comparisons


def _sparse(regrets: Regrets) -> Iterator[Comparison]:
    labels = {"arms": 100, "beta": 99, "delay": 100}
    yield from _compared(
        _words(labels),
        regrets.best(EPSILON_GREEDY, **labels),
        regrets.final("rcp-submax", **labels),
    )


def _everywhere(lower: str, higher: str) -> Callable[[Regrets], Iterator[Comparison]]:
    def comparisons(regrets: Regrets) -> Iterator[Comparison]:
        for labels in regrets.configurations():
            left, right = regrets.final(lower, **labels), regrets.final(higher, **labels)
            yield from _compared(_words(labels), left, right)

    return comparisons


def _most_competitive(regrets: Regrets) -> Iterator[Comparison]:
    """Mean over configurations of regret relative to the best policy there."""
    ratios: dict[str, list[float]] = {}
    for labels in regrets.configurations():
        best = regrets.best([*OTHERS, "rcp-submax"], **labels)
        if best is None or best.values.mean() <= 0:
            return
        for policy in [*OTHERS, "rcp-submax"]:
            side = regrets.final(policy, **labels)
            if side is not None:
                ratios.setdefault(policy, []).append(side.values.mean() / best.values.mean())
    if ratios:
        submax = ratios.pop("rcp-submax")
        rival = min(ratios, key=lambda policy: float(np.mean(ratios[policy])))
        left, right = Side("rcp-submax", np.array(submax)), Side(rival, np.array(ratios[rival]))
        yield Comparison.of("regret / lowest regret", left, right)


def _against_best(
    regrets: Regrets, policy: str, rivals: Iterable[str], **labels: Any
) -> Iterator[Comparison]:
    left, right = regrets.final(policy, **labels), regrets.best(rivals, **labels)
    yield from _compared(_words(labels), left, right)


def _compared(where: str, left: Side | None, right: Side | None) -> Iterator[Comparison]:
    if left is not None and right is not None:
        yield Comparison.of(where, left, right)


def _words(labels: dict[str, Any]) -> str:
    shown = {"arms": "K", "beta": "β", "delay": "N_b"}
    return ", ".join(f"{word}={labels[key]}" for key, word in shown.items())
