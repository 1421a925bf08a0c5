"""The problems a rule is scored on: those it may be chosen by, and those it may not."""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from submax.core.environment import Environment
from submax.environments.arms import Bernoulli, SparseBernoulli
from submax.environments.changing import DriftingBernoulli

BASIC = (
    "epsilon-greedy-0.01",
    "epsilon-greedy-0.05",
    "epsilon-greedy-0.1",
    "epsilon-greedy-0.2",
    "ucb1",
    "ucb1-pending",
    "thompson-1-1",
    "thompson-1-9",
    "thompson-1-99",
)
"""The classic policies that the rule was found against."""
STRONGER = (
    "posterior-greedy-1-1",
    "posterior-greedy-1-9",
    "posterior-greedy-1-99",
    "bayes-ucb-1-1-pending",
    "bayes-ucb-1-9-pending",
    "bayes-ucb-1-99-pending",
)
"""Classic policies that were added later; each of them is the best one on some problem."""
SLOW = ("information-directed-1-1", "information-directed-1-9", "information-directed-1-99")
"""Classic policies that take minutes with many arms, and were behind others with 100 arms."""
FEW_ARMS = 10
"""Up to this many arms the slow policies are run as well."""


class Problem(NamedTuple):
    """Arms, how many decisions share a batch, and how many are taken."""

    name: str
    environment: Environment[Any]
    batch: int
    observations: int = 5000


def classic(problem: Problem) -> tuple[str, ...]:
    """Return the names of the classic policies that a policy is compared with on this problem."""
    few = problem.environment.problem.space.size <= FEW_ARMS
    return (*BASIC, *STRONGER, *(SLOW if few else ()))


def paper() -> Iterator[Problem]:
    """The 27 configurations of section 4.1."""
    for arms, beta, batch in itertools.product((10, 100, 500), (1, 9, 99), (100, 500, 1000)):
        yield Problem(f"K={arms} Beta(1,{beta}) N={batch}", Bernoulli(arms, 1, beta), batch)


def held_out() -> Iterator[Problem]:
    """What played no part in finding the rule, but for the length of 20000 observations."""
    for arms, beta in itertools.product((3, 30, 1000), (1, 9, 99)):
        yield Problem(f"K={arms} Beta(1,{beta}) N=500", Bernoulli(arms, 1, beta), 500)
    for arms, batch in itertools.product((10, 100), (100, 1000)):
        yield Problem(f"K={arms} Beta(2,8) N={batch}", Bernoulli(arms, 2, 8), batch)
    for arms, batch in itertools.product((100, 500), (100, 1000)):
        yield Problem(f"K={arms}, 5 of 0.3 among 0.05, N={batch}", SparseBernoulli(arms, 5), batch)
    for arms, batch in itertools.product((10, 100), (1, 50, 3000)):
        yield Problem(f"K={arms} Beta(1,9) N={batch}", Bernoulli(arms, 1, 9), batch)
    for arms, batch in itertools.product((10, 100), (100, 1000)):
        many = Bernoulli(arms, 1, 9)
        yield Problem(f"K={arms} Beta(1,9) N={batch}, 20000 observations", many, batch, 20000)
    for arms in (10, 100):
        moving = DriftingBernoulli(arms, 1, 9, memory=5000)
        yield Problem(f"K={arms} Beta(1,9) N=100, drifting", moving, 100)


SETS = {"paper": paper, "held-out": held_out}
