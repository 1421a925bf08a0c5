"""Score a policy: its final regret, relative to that of the best classic policy of each problem.

    python docs/research/score.py rcp-adaptive
    python docs/research/score.py my_policy.py:Mine --replicas 40
    python docs/research/score.py rcp-adaptive --problems held-out --replicas 400 --seed 2024
    python docs/research/score.py rcp-adaptive --rivals basic --replicas 400 --seed 2024

The results of the classic policies are in classics.csv beside this file. If a seed is not there,
--classics runs them first and adds them. The best policy of a problem is the one with the least
mean, so its parameters are chosen in hindsight. --rivals basic compares with the nine policies that
the rule was found against; the held-out problems have no others.
"""

import argparse
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from submax import BatchedRewards, Bernoulli, SparseBernoulli, make_policy, simulate
from submax.core.environment import Environment
from submax.core.numerics import standard_error
from submax.environments.changing import DriftingBernoulli
from submax.simulation.runner import available_cores, local_executor

FILE = Path(__file__).with_name("classics.csv")
CHOOSING = 7
"""The seed of the worlds that rules are chosen by; they are reported on 2024."""
BASIC = [
    *(f"epsilon-greedy-{epsilon}" for epsilon in (0.01, 0.05, 0.1, 0.2)),
    *("ucb1", "ucb1-pending", "thompson-1-1", "thompson-1-9", "thompson-1-99"),
]
"""The classic policies that the rule was found against."""
STRONGER = [
    *(f"posterior-greedy-1-{beta}" for beta in (1, 9, 99)),
    *(f"bayes-ucb-1-{beta}-pending" for beta in (1, 9, 99)),
]
"""Classic policies that were added later; each of them is the best one on some problem."""
SLOW, FEW_ARMS = [f"information-directed-1-{beta}" for beta in (1, 9, 99)], 10
"""Classic policies that take minutes with many arms: they are run up to this many arms."""


class Problem(NamedTuple):
    """Arms, how many decisions share a batch, and how many are taken."""

    name: str
    environment: Environment[Any]
    batch: int
    observations: int = 5000


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


def final(problem: Problem, policy: str, seed: int, replicas: int) -> dict[str, Any]:
    """Final regret of one policy on one problem; policies with one seed meet the same worlds."""
    regret = simulate(
        problem.environment,
        make_policy({"kind": policy} if ".py:" in policy else policy),
        observations=problem.observations,
        replicas=replicas,
        delay=BatchedRewards(problem.batch),
        seed=seed,
        points=1,
    ).final_regret
    mean, error = float(regret.mean()), float(standard_error(regret))
    key = {"problem": problem.name, "policy": policy, "seed": seed, "replicas": replicas}
    return {**key, "mean": mean, "error": error}


def scored(finals: pd.DataFrame, rivals: pd.DataFrame) -> pd.DataFrame:
    """Return the ratio to the rival with the least mean; its error takes both as independent."""
    best = rivals.loc[rivals.groupby("problem")["mean"].idxmin()]
    best = best.set_index("problem").loc[finals["problem"]].reset_index()
    ratio = finals["mean"] / best["mean"]
    error = ratio * np.hypot(finals["error"] / finals["mean"], best["error"] / best["mean"])
    return finals.assign(best=best["policy"], ratio=ratio, ratio_error=error)


def summary(table: pd.DataFrame) -> str:
    """Mean, worst and wins."""
    ratio, error = table["ratio"], table["ratio_error"]
    worst = ratio.idxmax()
    return (
        f"mean {ratio.mean():.3f} ± {np.linalg.norm(error) / len(error):.3f}, "
        f"worst {ratio[worst]:.3f} ± {error[worst]:.3f}, "
        f"at or below 1 in {(ratio <= 1).sum()} of {len(ratio)}"
    )


def main() -> None:
    """Run the problems in processes, and print the ratios."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("policies", nargs="*", help="names, or FILE.py:CLASS")
    parser.add_argument("--problems", nargs="+", choices=SETS, default=["paper"])
    parser.add_argument("--rivals", choices=("basic", "all"), default="all")
    parser.add_argument("--replicas", type=int, default=100)
    parser.add_argument("--seed", type=int, default=CHOOSING)
    parser.add_argument("--jobs", type=int, default=available_cores())
    parser.add_argument("--csv", type=Path, help="write the results to this file")
    parser.add_argument("--classics", action="store_true", help="run the classic policies first")
    given = parser.parse_args()
    problems = {problem.name: problem for name in given.problems for problem in SETS[name]()}
    classics = pd.read_csv(FILE)
    with local_executor(given.jobs) as executor:

        def run(policies: list[str], chosen: list[Problem]) -> pd.DataFrame:
            more = itertools.repeat(given.seed), itertools.repeat(given.replicas)
            pairs = zip(*itertools.product(chosen, policies), strict=True)
            return pd.DataFrame(executor.map(final, *pairs, *more))

        if given.classics:
            new = [run([*BASIC, *STRONGER], [*problems.values()])]
            sizes = {name: one.environment.problem.space.size for name, one in problems.items()}
            if few := [problems[name] for name, size in sizes.items() if size <= FEW_ARMS]:
                new.append(run(SLOW, few))
            # Of results that are there already, those with more replicas stay.
            joined = pd.concat([classics, *new], ignore_index=True).sort_values(
                "replicas", kind="stable"
            )
            classics = joined.drop_duplicates(
                ["problem", "policy", "seed"], keep="last"
            ).sort_index()
            classics.to_csv(FILE, index=False, float_format="%.6g")
        rivals = classics[(classics["seed"] == given.seed) & classics["problem"].isin(problems)]
        if given.rivals == "basic":
            rivals = rivals[rivals["policy"].isin(BASIC)]
        if set(problems) - set(rivals["problem"]):
            parser.error(f"{FILE.name} lacks classic policies for seed {given.seed}: --classics")
        tables = [scored(run([one], [*problems.values()]), rivals) for one in given.policies]
    for table in tables:
        print(table.drop(columns=["seed"]).to_string(index=False, float_format="{:.3f}".format))
        print(summary(table), end="\n\n")
    if given.csv is not None and tables:
        pd.concat(tables).to_csv(given.csv, index=False, float_format="%.6g")


if __name__ == "__main__":
    main()
