"""The statements of the abstract and of section 4.1 of the paper, tested on a sweep."""

from submax.experiments.comparing.paired_comparison import Finals
from submax.experiments.statements.bernoulli_comparisons import (
    ALL,
    ARMS,
    BETAS,
    CLASSIC,
    DELAYS,
    PAPER,
    STRONG,
    THOMPSON,
    ahead,
    ahead_in_most,
    best_for_every_k,
    best_less,
    degrade,
    large_and_sparse,
    less,
    less_than_best,
    long_delay,
    most_competitive,
    prior,
    short_delay,
    slope,
    sparse,
    true_prior_does_not_degrade,
)
from submax.experiments.statements.claim import Claim
from submax.experiments.statements.quotes import (
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
)
from submax.experiments.statements.statement import Statement

CLAIMS = [
    Claim(
        "paper",
        ABSTRACT,
        "UCB1 has less regret than optimistic",
        ALL,
        less("ucb1", "rcp-optimistic"),
    ),
    Claim(
        "paper",
        ABSTRACT,
        "The best Thompson prior has less regret than optimistic",
        ALL,
        best_less(THOMPSON, "rcp-optimistic"),
    ),
    Claim(
        "paper",
        ABSTRACT,
        "The best of UCB1 and Thompson has less regret than the marginalized policy",
        ALL,
        best_less(["ucb1", *THOMPSON], "rcp-marginalized"),
    ),
    Claim(
        "paper",
        LARGE,
        "Classic methods lose, relative to random, from K=10 to 500 (Beta(1,9), N_b=100)",
        len(CLASSIC) - 1,
        degrade,
    ),
    Claim(
        "paper",
        LARGE,
        "Thompson with the true prior does not lose, relative to random, from K=10 to 500",
        1,
        true_prior_does_not_degrade,
    ),
    Claim(
        "paper",
        BEST,
        "SubMax is best for every K (Beta(1,9), N_b=100)",
        len(ARMS),
        best_for_every_k,
    ),
    Claim(
        "paper",
        SPARSE,
        "Thompson with the true prior is the best classic method (K=100, N_b=100)",
        len(BETAS),
        prior,
    ),
    Claim("paper", SPARSE, "ε-greedy is ahead of SubMax at Beta(1,99) (K=100, N_b=100)", 1, sparse),
    Claim(
        "paper", DELAYED, "SubMax is best for N_b=100 and 500 (K=100, Beta(1,9))", 2, short_delay
    ),
    Claim(
        "paper",
        DELAYED,
        "Thompson is ahead of SubMax for N_b=1000 (K=100, Beta(1,9))",
        1,
        long_delay,
    ),
    Claim("paper", SLOPE, "SubMax then adds less regret per decision at the end", 1, slope),
    Claim(
        "paper",
        OVERALL,
        "SubMax is nearest to the best of each configuration, on average",
        1,
        most_competitive(PAPER),
    ),
    Claim(
        "paper",
        OVERALL,
        "SubMax is ahead of all classic methods of the paper in most configurations",
        1,
        ahead_in_most,
    ),
    Claim(
        "paper",
        SUPERIOR,
        "SubMax has less regret than the best classic method of the paper (K=500, Beta(1,99))",
        len(DELAYS),
        large_and_sparse,
    ),
    Claim(
        "paper",
        IMPROVED,
        "SubMax has less regret than the marginalized policy",
        ALL,
        less("rcp-submax", "rcp-marginalized"),
    ),
    Claim(
        "paper",
        WITHIN,
        "SubMax has less regret than optimized",
        ALL,
        less("rcp-submax", "rcp-optimized"),
    ),
    Claim(
        "paper",
        WITHIN,
        "Optimized has less regret than optimistic",
        ALL,
        less("rcp-optimized", "rcp-optimistic"),
    ),
    Claim(
        "submax",
        "",
        "Optimistic has less regret than random",
        ALL,
        less("rcp-optimistic", "random"),
    ),
    Claim(
        "submax",
        "",
        "Thompson with the true prior is ahead of SubMax at Beta(1,1)",
        9,
        ahead(beta=1),
    ),
    Claim(
        "submax",
        "",
        "Thompson with the true prior is ahead of SubMax at N_b=1000",
        9,
        ahead(delay=1000),
    ),
    Claim(
        "submax",
        "",
        "SubMax is nearest to the best, on average, with the classic methods added here",
        1,
        most_competitive([*PAPER, *STRONG]),
    ),
    Claim(
        "submax",
        "",
        "The default rcp-adaptive has less regret than the best classic method in hindsight",
        ALL,
        less_than_best("rcp-adaptive", [*CLASSIC, *STRONG]),
    ),
]
"""What is tested: first the statements of the paper, then ours."""


def bernoulli_statements(finals: Finals) -> list[Statement]:
    """The statements about Bernoulli arms, each with its comparisons."""
    return [claim.tested(finals) for claim in CLAIMS]
