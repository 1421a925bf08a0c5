"""Score a policy: its final regret, relative to that of the best classic policy of each problem.

    python docs/research/score.py rcp-adaptive
    python docs/research/score.py my_policy.py:Mine --replicas 40
    python docs/research/score.py rcp-adaptive --problems held-out --replicas 400 --seed 2024
    python docs/research/score.py rcp-adaptive --rivals basic --replicas 400 --seed 2024

The results of the classic policies are in classics.csv beside this file. If a seed is not there,
--classics runs them first and adds them. The best policy of a problem is the one with the least
mean, so that its parameters are chosen in hindsight. --rivals basic compares with the nine policies
that the rule was found against; the held-out problems have no others.
"""

import argparse
import csv
import math
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))
from problems import BASIC, SETS, Problem, classic

from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.policies import make_policy
from submax.simulation.delays import BatchedRewards
from submax.simulation.runner import available_cores, local_executor
from submax.simulation.simulate import simulate

FILE = Path(__file__).with_name("classics.csv")
CHOOSING, REPORTING = 7, 2024
"""The seeds of the worlds that rules are chosen by, and of those they are reported on."""
RIVALS = {"basic": BASIC, "all": None}
"""Names of the policies to compare with; None stands for every policy in the file."""


class Final(NamedTuple):
    """Final regret of one policy on one problem: mean and standard error over replicas."""

    problem: str
    policy: str
    seed: int
    replicas: int
    mean: float
    error: float


class Ratio(NamedTuple):
    """To the best classic policy; the error takes both as independent."""

    problem: str
    best: str
    value: float
    error: float


def main(words: Sequence[str] | None = None) -> None:
    """Run the problems in processes, and print the ratios."""
    parser = _parser()
    given = parser.parse_args(words)
    if given.replicas < 2 or given.jobs < 1:
        parser.error("at least two replicas and one job are needed")
    if not given.policies and not given.classics:
        parser.error("name a policy, such as rcp-adaptive or FILE.py:CLASS")
    for policy in given.policies:
        try:
            made(policy)
        except InputError as error:
            parser.error(str(error))
    chosen = [problem for name in given.problems for problem in SETS[name]()]
    with local_executor(given.jobs) as executor:
        if given.classics:
            _add(run_classics(chosen, given.seed, given.replicas, executor))
        rivals = _rivals(given.seed, RIVALS[given.rivals])
        missing = [problem.name for problem in chosen if problem.name not in rivals]
        if missing:
            seeds = {one.seed for one in _read() if one.problem in missing}
            parser.error(
                f"{FILE.name} has no classic policies for {missing[0]} and seed {given.seed}: "
                f"give --seed {' or '.join(map(str, sorted(seeds)))}, or --classics to run them"
                if seeds
                else f"{FILE.name} has no classic policies for {missing[0]}: give --classics"
            )
        for policy in given.policies:
            finals = run([policy], chosen, given.seed, given.replicas, executor)
            ratios = [ratio(final, rivals[final.problem]) for final in finals]
            _print(policy, ratios, finals)
            if given.csv is not None:
                _write(given.csv, policy, ratios, finals)


def run_classics(
    problems: Sequence[Problem], seed: int, replicas: int, executor: Executor
) -> list[Final]:
    """Return the final regret of the classic policies of every problem."""
    futures = [
        executor.submit(final, problem, policy, seed, replicas)
        for problem in problems
        for policy in classic(problem)
    ]
    return [future.result() for future in futures]


def run(
    policies: Sequence[str],
    problems: Sequence[Problem],
    seed: int,
    replicas: int,
    executor: Executor,
) -> list[Final]:
    """Every policy on every problem."""
    futures = [
        executor.submit(final, problem, policy, seed, replicas)
        for problem in problems
        for policy in policies
    ]
    return [future.result() for future in futures]


def final(problem: Problem, policy: str, seed: int, replicas: int) -> Final:
    """One cell; policies with one seed meet the same worlds."""
    trace = simulate(
        problem.environment,
        made(policy),
        observations=problem.observations,
        replicas=replicas,
        delay=BatchedRewards(problem.batch),
        seed=seed,
        points=1,
    )
    regret = trace.final_regret
    error = float(regret.std(ddof=1)) / math.sqrt(replicas)
    return Final(problem.name, policy, seed, replicas, float(regret.mean()), error)


def made(policy: str) -> Policy[Any]:
    """A preset by its name, or a class of the user's own file by its path."""
    if policy.endswith(".py"):
        raise InputError(f"name the class as well: {policy}:CLASS")
    return make_policy({"kind": policy} if ".py:" in policy else policy)


def ratio(one: Final, rivals: Sequence[Final]) -> Ratio:
    """To the rival with the least mean."""
    best = min(rivals, key=lambda rival: rival.mean)
    value = one.mean / best.mean
    error = value * math.hypot(one.error / one.mean, best.error / best.mean)
    return Ratio(one.problem, best.policy, value, error)


def _rivals(seed: int, names: Sequence[str] | None = None) -> Mapping[str, Sequence[Final]]:
    """Return the classic policies of every problem, or those among them with these names."""
    rivals: dict[str, list[Final]] = {}
    for one in _read():
        if one.seed == seed and (names is None or one.policy in names):
            rivals.setdefault(one.problem, []).append(one)
    return rivals


def _read() -> list[Final]:
    if not FILE.exists():
        return []
    with FILE.open(newline="") as file:
        kinds = Final.__annotations__.values()
        return [
            Final(*(kind(cell) for kind, cell in zip(kinds, row.values(), strict=True)))
            for row in csv.DictReader(file)
        ]


def _add(finals: Sequence[Final]) -> None:
    """To the file, but for what stands there with more replicas."""
    cells = {one[:3]: one for one in finals}
    before = _read()
    better = {
        one[:3] for one in before if one[:3] in cells and one.replicas > cells[one[:3]].replicas
    }
    kept = [one for one in before if one[:3] not in cells or one[:3] in better]
    finals = [one for one in finals if one[:3] not in better]
    with FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Final._fields)
        for one in (*kept, *finals):
            writer.writerow([*one[:4], f"{one.mean:.6g}", f"{one.error:.4g}"])


def _print(policy: str, ratios: Sequence[Ratio], finals: Sequence[Final]) -> None:
    print(f"\n{policy}: final regret, and its ratio to the best classic policy")
    for one, here in zip(ratios, finals, strict=True):
        above = "  above 1 by more than two errors" if one.value - 2 * one.error > 1 else ""
        numbers = f"{here.mean:8.1f}  {one.value:.3f} ± {one.error:.3f}"
        print(f"  {one.problem:42s} {numbers}  {one.best}{above}")
    print(f"  {summary(ratios)}")


def summary(ratios: Sequence[Ratio]) -> str:
    """Mean, worst and wins."""
    values = [one.value for one in ratios]
    mean = sum(values) / len(values)
    error = math.hypot(*(one.error for one in ratios)) / len(ratios)
    worst = max(ratios, key=lambda one: one.value)
    return (
        f"mean {mean:.3f} ± {error:.3f}, worst {worst.value:.3f} ± {worst.error:.3f}, "
        f"at or below 1 in {sum(value <= 1 for value in values)} of {len(values)}"
    )


def _write(path: Path, policy: str, ratios: Sequence[Ratio], finals: Sequence[Final]) -> None:
    begun = path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not begun:
            writer.writerow([*Final._fields, "best", "ratio", "ratio_error"])
        for one, here in zip(ratios, finals, strict=True):
            numbers = (f"{here.mean:.6g}", f"{here.error:.4g}")
            found = (one.best, f"{one.value:.4f}", f"{one.error:.4f}")
            writer.writerow([here.problem, policy, here.seed, here.replicas, *numbers, *found])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("policies", nargs="*", help="names, or FILE.py:CLASS")
    parser.add_argument("--problems", nargs="+", choices=SETS, default=["paper"])
    parser.add_argument("--rivals", choices=RIVALS, default="all", help="whom to compare with")
    parser.add_argument("--replicas", type=int, default=100)
    parser.add_argument("--seed", type=int, default=CHOOSING)
    parser.add_argument("--jobs", type=int, default=available_cores())
    parser.add_argument("--csv", type=Path, help="add the results to this file")
    parser.add_argument("--classics", action="store_true", help="run the classic policies first")
    return parser


if __name__ == "__main__":
    main()
