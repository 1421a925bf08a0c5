"""The comparisons of policies on Bernoulli arms on which statements of the paper rest."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from submax.experiments.comparing.paired_comparison import (
    Finals,
    PairedComparison,
    Side,
    against_best,
    compared,
    less_regret,
)

EPSILON_GREEDY = [f"epsilon-greedy-{epsilon}" for epsilon in (0.01, 0.05, 0.1, 0.2)]
THOMPSON = [f"thompson-1-{beta}" for beta in (1, 9, 99)]
CLASSIC = [*EPSILON_GREEDY, "ucb1", *THOMPSON]
"""The classic methods of the paper."""
PAPER = ["random", *CLASSIC, "rcp-optimistic", "rcp-optimized"]
"""All methods of the paper except SubMax."""
PRIORS = (1, 9, 99)
STRONG = [
    *("gradient", "ucb1-pending", "kl-ucb", "kl-ucb-pending", "moss", "moss-pending"),
    *("imed", "imed-pending"),
    *(f"bayes-ucb-1-{beta}" for beta in PRIORS),
    *(f"bayes-ucb-1-{beta}-pending" for beta in PRIORS),
    *(f"information-directed-1-{beta}" for beta in PRIORS),
    *(f"posterior-greedy-1-{beta}" for beta in PRIORS),
]
"""Classic methods that are not in the paper."""
ARMS, BETAS, DELAYS = (10, 100, 500), (1, 9, 99), (100, 500, 1000)
ALL = len(ARMS) * len(BETAS) * len(DELAYS)

Comparisons: TypeAlias = Callable[[Finals], Iterator[PairedComparison]]


def degrade(finals: Finals) -> Iterator[PairedComparison]:
    """Compare each classic policy at K = 10 with itself at K = 500, relative to random choice."""
    for policy in [name for name in CLASSIC if name != "thompson-1-9"]:
        yield from compared(policy, relative(finals, policy, 10), relative(finals, policy, 500))


def true_prior_does_not_degrade(finals: Finals) -> Iterator[PairedComparison]:
    """Compare Thompson sampling with the true prior at K = 500 and at K = 10."""
    policy = "thompson-1-9"
    yield from compared(policy, relative(finals, policy, 500), relative(finals, policy, 10))


def relative(finals: Finals, policy: str, arms: int) -> Side | None:
    """The regret over the mean regret of random choice, which grows with K as well."""
    found = finals.final(policy, arms=arms, beta=9, delay=100)
    random = finals.final("random", arms=arms, beta=9, delay=100)
    if found is None or random is None or random.values.mean() <= 0:
        return None
    return Side(f"K={arms}", found.values / random.values.mean())


def best_for_every_k(finals: Finals) -> Iterator[PairedComparison]:
    """Compare SubMax with the best other policy of the paper for every K, at β = 9."""
    for arms in ARMS:
        labels = {"arms": arms, "beta": 9, "delay": 100}
        yield from against_best(finals, words(labels), "rcp-submax", PAPER, labels)


def short_delay(finals: Finals) -> Iterator[PairedComparison]:
    """Compare SubMax with the best other policy of the paper at the two shorter delays."""
    for delay in DELAYS[:2]:
        labels = {"arms": 100, "beta": 9, "delay": delay}
        yield from against_best(finals, words(labels), "rcp-submax", PAPER, labels)


def long_delay(finals: Finals) -> Iterator[PairedComparison]:
    """Compare the best Thompson sampling with SubMax at the longest delay."""
    labels = {"arms": 100, "beta": 9, "delay": 1000}
    yield from compared(
        words(labels), finals.best(THOMPSON, **labels), finals.final("rcp-submax", **labels)
    )


def slope(finals: Finals) -> Iterator[PairedComparison]:
    """Compare the late regret of SubMax with that of the best Thompson sampling."""
    labels = {"arms": 100, "beta": 9, "delay": 1000}
    best = finals.best(THOMPSON, **labels)
    if best is not None:
        yield from compared(
            words(labels), finals.late("rcp-submax", **labels), finals.late(best.name, **labels)
        )


def prior(finals: Finals) -> Iterator[PairedComparison]:
    """Compare Thompson sampling with the true prior with the best other classic policy."""
    for beta in BETAS:
        true = f"thompson-1-{beta}"
        rivals = [name for name in CLASSIC if name != true]
        labels = {"arms": 100, "beta": beta, "delay": 100}
        yield from against_best(finals, words(labels), true, rivals, labels)


def sparse(finals: Finals) -> Iterator[PairedComparison]:
    """Compare the best ε-greedy with SubMax at β = 99."""
    labels = {"arms": 100, "beta": 99, "delay": 100}
    yield from compared(
        words(labels),
        finals.best(EPSILON_GREEDY, **labels),
        finals.final("rcp-submax", **labels),
    )


def ahead(**fixed: int) -> Comparisons:
    """Compare Thompson sampling with the true prior with SubMax, where labels are as ``fixed``."""

    def comparisons(finals: Finals) -> Iterator[PairedComparison]:
        for labels in finals.configurations():
            if fixed.items() <= labels.items():
                true = finals.final(f"thompson-1-{labels['beta']}", **labels)
                yield from compared(words(labels), true, finals.final("rcp-submax", **labels))

    return comparisons


def less(lower: str, higher: str) -> Comparisons:
    """Compare two policies in every configuration."""
    return lambda finals: less_regret(finals, lower, higher, words)


def best_less(lower: list[str], higher: str) -> Comparisons:
    """Compare the best of several policies with another one in every configuration."""

    def comparisons(finals: Finals) -> Iterator[PairedComparison]:
        for labels in finals.configurations():
            left, right = finals.best(lower, **labels), finals.final(higher, **labels)
            yield from compared(words(labels), left, right)

    return comparisons


def less_than_best(policy: str, rivals: list[str]) -> Comparisons:
    """Compare a policy with the best of its rivals in every configuration."""

    def comparisons(finals: Finals) -> Iterator[PairedComparison]:
        for labels in finals.configurations():
            yield from against_best(finals, words(labels), policy, rivals, labels)

    return comparisons


def large_and_sparse(finals: Finals) -> Iterator[PairedComparison]:
    """Compare SubMax with the best classic policy at K = 500 and β = 99."""
    for delay in DELAYS:
        labels = {"arms": 500, "beta": 99, "delay": delay}
        yield from against_best(finals, words(labels), "rcp-submax", CLASSIC, labels)


def ahead_in_most(finals: Finals) -> Iterator[PairedComparison]:
    """Compare the share of configurations in which SubMax is not ahead with one half."""
    behind = []
    for labels in finals.configurations():
        submax, best = finals.final("rcp-submax", **labels), finals.best(CLASSIC, **labels)
        if submax is None or best is None:
            return
        behind.append(float(submax.values.mean() >= best.values.mean()))
    if behind:
        shares = np.array(behind)
        left, right = Side("rcp-submax not ahead", shares), Side("half", np.full_like(shares, 0.5))
        yield PairedComparison.of("share of the configurations", left, right)


def most_competitive(rivals: list[str]) -> Comparisons:
    """Compare means over configurations of the regret over that of the best policy."""

    def comparisons(finals: Finals) -> Iterator[PairedComparison]:
        ratios: dict[str, list[float]] = {}
        for labels in finals.configurations():
            best = finals.best([*rivals, "rcp-submax"], **labels)
            if best is None or best.values.mean() <= 0:
                return
            for policy in [*rivals, "rcp-submax"]:
                side = finals.final(policy, **labels)
                if side is not None:
                    ratios.setdefault(policy, []).append(side.values.mean() / best.values.mean())
        if ratios:
            submax = ratios.pop("rcp-submax")
            rival = min(ratios, key=lambda policy: float(np.mean(ratios[policy])))
            left, right = Side("rcp-submax", np.array(submax)), Side(rival, np.array(ratios[rival]))
            yield PairedComparison.of("regret / lowest regret", left, right)

    return comparisons


def words(labels: dict[str, Any]) -> str:
    """Return a configuration in the symbols of the paper."""
    symbols = {"arms": "K", "beta": "β", "delay": "N_b"}
    return ", ".join(f"{symbol}={labels[key]}" for key, symbol in symbols.items())
