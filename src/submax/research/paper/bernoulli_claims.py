"""The claims of the abstract and of section 4.1, tested on a sweep."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from submax.research.paper.statements import (
    ABSTRACT,
    BEST,
    DELAYED,
    IMPROVED,
    LARGE,
    OVERALL,
    SLOPE,
    SPARSE,
    SUPERIOR,
    WITHIN,
    Comparisons,
    Methods,
    PairedComparison,
    Statement,
    best_elsewhere,
    best_of,
    claims_of,
    compared,
    ranked,
    share_of_random,
)
from submax.simulation.compare import Finals, Side

EPSILON_GREEDY = [f"epsilon-greedy-{epsilon}" for epsilon in (0.01, 0.05, 0.1, 0.2)]
THOMPSON = [f"thompson-1-{beta}" for beta in (1, 9, 99)]
SUBMAX = ["rcp-submax"]
CLASSIC = [*EPSILON_GREEDY, "ucb1", *THOMPSON]
"""The classic methods of the paper."""
PAPER = ["random", *CLASSIC, "rcp-optimistic", "rcp-optimized"]
"""All methods of the paper except SubMax."""
ARMS, BETAS, DELAYS = (10, 100, 500), (1, 9, 99), (100, 500, 1000)
STRONG = [
    *("gradient", "ucb1-pending", "kl-ucb", "kl-ucb-pending", "moss", "moss-pending"),
    *("imed", "imed-pending"),
    *(f"bayes-ucb-1-{beta}" for beta in BETAS),
    *(f"bayes-ucb-1-{beta}-pending" for beta in BETAS),
    *(f"information-directed-1-{beta}" for beta in BETAS),
    *(f"posterior-greedy-1-{beta}" for beta in BETAS),
]
"""Classic methods that are not in the paper."""
TILTED = [f"rcp-tilted-{temperature}" for temperature in (0.5, 2, 8)]
"""The marginalized policy with a target tilted towards high rewards, by temperature."""
CONDITIONED = ("rcp-optimistic", "rcp-optimized", "rcp-submax")
CONSTANTS = ("0", "0.01", "0.3", "1", "fitted")
"""What is added to counts, beside the 0.1 of the presets."""
ALL = len(ARMS) * len(BETAS) * len(DELAYS)


def degrade(finals: Finals) -> Iterator[PairedComparison]:
    """Compare each classic policy at K = 10 with itself at K = 500, relative to random choice."""
    for policy in [name for name in CLASSIC if name != "thompson-1-9"]:
        yield from compared(policy, relative(finals, policy, 10), relative(finals, policy, 500))


def true_prior_does_not_degrade(finals: Finals) -> Iterator[PairedComparison]:
    """Compare Thompson sampling with the true prior at K = 500 and at K = 10."""
    sides = (relative(finals, "thompson-1-9", arms) for arms in (500, 10))
    yield from compared("thompson-1-9", *sides)


def relative(finals: Finals, policy: str, arms: int) -> Side | None:
    """The regret as a share of that of random choice, which grows with K as well."""
    labels = {"arms": arms, "beta": 9, "delay": 100}
    found, random = finals.final(policy, **labels), finals.final("random", **labels)
    return share_of_random(f"K={arms}", found, random)


def slope(finals: Finals) -> Iterator[PairedComparison]:
    """Compare the late regret of SubMax with that of the best Thompson sampling."""
    labels = {"arms": 100, "beta": 9, "delay": 1000}
    rivals = [finals.side("late_slope", name, labels) for name in THOMPSON]
    late = finals.side("late_slope", "rcp-submax", labels)
    yield from compared(words(labels), late, best_elsewhere(rivals))


def lower(left: Methods, right: Methods, **where: Sequence[int]) -> Comparisons:
    """Claim that the best of ``left`` has less regret than the best of ``right``."""
    return ranked(left, right, words, where)


def true_prior(labels: dict[str, Any]) -> list[str]:
    """Thompson sampling with the prior of the environment."""
    return [f"thompson-1-{labels['beta']}"]


def other_classics(labels: dict[str, Any]) -> list[str]:
    """The classic methods without Thompson sampling with the prior of the environment."""
    return [name for name in CLASSIC if name not in true_prior(labels)]


def ahead_in_most(finals: Finals) -> Iterator[PairedComparison]:
    """Compare the share of configurations in which SubMax is not ahead with one half."""
    behind = []
    for labels in finals.configurations():
        submax, best = finals.final("rcp-submax", **labels), best_of(finals, CLASSIC, labels)
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
            sides = {name: finals.final(name, **labels) for name in [*rivals, "rcp-submax"]}
            means = {name: float(side.values.mean()) for name, side in sides.items() if side}
            if len(means) < len(sides) or min(means.values()) <= 0:
                return
            for policy, mean in means.items():
                ratios.setdefault(policy, []).append(mean / min(means.values()))
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


CLAIMS = claims_of(
    {
        ABSTRACT: [
            ("UCB1 has less regret than optimistic", ALL, lower(["ucb1"], ["rcp-optimistic"])),
            (
                "The best Thompson prior has less regret than optimistic",
                ALL,
                lower(THOMPSON, ["rcp-optimistic"]),
            ),
            (
                "The best of UCB1 and Thompson has less regret than the best tilted "
                "marginalized policy",
                ALL,
                lower(["ucb1", *THOMPSON], TILTED),
            ),
        ],
        LARGE: [
            (
                "Classic methods lose, relative to random, from K=10 to 500 (Beta(1,9), N_b=100)",
                len(CLASSIC) - 1,
                degrade,
            ),
            (
                "Thompson with the true prior does not lose, relative to random, from K=10 to 500",
                1,
                true_prior_does_not_degrade,
            ),
        ],
        BEST: [
            (
                "SubMax is best for every K (Beta(1,9), N_b=100)",
                len(ARMS),
                lower(SUBMAX, PAPER, beta=[9], delay=[100]),
            )
        ],
        SPARSE: [
            (
                "Thompson with the true prior is the best classic method (K=100, N_b=100)",
                len(BETAS),
                lower(true_prior, other_classics, arms=[100], delay=[100]),
            ),
            (
                "ε-greedy is ahead of SubMax at Beta(1,99) (K=100, N_b=100)",
                1,
                lower(EPSILON_GREEDY, SUBMAX, arms=[100], beta=[99], delay=[100]),
            ),
        ],
        DELAYED: [
            (
                "SubMax is best for N_b=100 and 500 (K=100, Beta(1,9))",
                2,
                lower(SUBMAX, PAPER, arms=[100], beta=[9], delay=[100, 500]),
            ),
            (
                "Thompson is ahead of SubMax for N_b=1000 (K=100, Beta(1,9))",
                1,
                lower(THOMPSON, SUBMAX, arms=[100], beta=[9], delay=[1000]),
            ),
        ],
        SLOPE: [("SubMax then adds less regret per decision at the end", 1, slope)],
        OVERALL: [
            (
                "SubMax is nearest to the best of each configuration, on average",
                1,
                most_competitive(PAPER),
            ),
            (
                "SubMax is ahead of all classic methods of the paper in most configurations",
                1,
                ahead_in_most,
            ),
        ],
        SUPERIOR: [
            (
                "SubMax has less regret than the best classic method of the paper "
                "(K=500, Beta(1,99))",
                len(DELAYS),
                lower(SUBMAX, CLASSIC, arms=[500], beta=[99]),
            )
        ],
        IMPROVED: [
            (
                "SubMax has less regret than the marginalized policy, whose target is "
                "the observed rewards",
                ALL,
                lower(SUBMAX, ["rcp-marginalized"]),
            ),
            (
                "SubMax has less regret than the marginalized policy with the best tilted target",
                ALL,
                lower(SUBMAX, TILTED),
            ),
        ],
        WITHIN: [
            ("SubMax has less regret than optimized", ALL, lower(SUBMAX, ["rcp-optimized"])),
            (
                "Optimized has less regret than optimistic",
                ALL,
                lower(["rcp-optimized"], ["rcp-optimistic"]),
            ),
        ],
    },
    [
        ("Optimistic has less regret than random", ALL, lower(["rcp-optimistic"], ["random"])),
        (
            "Thompson with the true prior is ahead of SubMax at Beta(1,1)",
            9,
            lower(true_prior, SUBMAX, beta=[1]),
        ),
        (
            "Thompson with the true prior is ahead of SubMax at N_b=1000",
            9,
            lower(true_prior, SUBMAX, delay=[1000]),
        ),
        (
            "SubMax is nearest to the best, on average, with the classic methods added here",
            1,
            most_competitive([*PAPER, *STRONG]),
        ),
        (
            "The default rcp-adaptive has less regret than the best classic method in hindsight",
            ALL,
            lower(["rcp-adaptive"], [*CLASSIC, *STRONG]),
        ),
    ],
)
"""What is tested: first the statements of the paper, then ours."""


class Smoothed(Finals):
    """Results in which the presets stand for variants with other constants; the best of several."""

    def __init__(self, finals: Finals, constants: Sequence[str]) -> None:
        self._finals = finals
        self._constants = constants

    def configurations(self) -> list[dict[str, Any]]:
        return self._finals.configurations()

    def side(self, measure: str, policy: str, labels: dict[str, Any]) -> Side | None:
        names = [policy]
        if policy in CONDITIONED:
            names = [f"{policy}, c = {one}" if one else policy for one in self._constants]
        return best_elsewhere([self._finals.side(measure, name, labels) for name in names])


def bernoulli_statements(finals: Finals) -> list[Statement]:
    """The statements about Bernoulli arms, each with its comparisons."""
    smoothed = {f"c = {one}": Smoothed(finals, [one]) for one in CONSTANTS}
    smoothed["best c in hindsight"] = Smoothed(finals, ["", *CONSTANTS])
    return [claim.tested(finals, smoothed) for claim in CLAIMS]
