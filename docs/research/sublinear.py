"""Measure how fast the expected regret grows, and compare it with the bound of Lai and Robbins.

    python docs/research/sublinear.py
    python docs/research/sublinear.py --problem "K = 2, 0.5 and 0.45" --policy imed --batch 1 10

The results are written to sublinear.csv beside this file; a cell that is run again replaces its
rows. The cells are run one after the other in one process, for about half an hour in all. One cell
is one call of ``simulate``, so that every row can be reproduced by

    simulate(environment, make_policy(policy), observations=observations, replicas=replicas,
             delay=BatchedRewards(batch), seed=seed, points=1000)
"""

import argparse
import csv
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.environments.arms import Bernoulli, SparseBernoulli
from submax.policies import make_policy
from submax.policies.ucb import divergence
from submax.simulation.delays import BatchedRewards
from submax.simulation.simulate import simulate

FILE = Path(__file__).with_name("sublinear.csv")
SEED = 1
POINTS = 1000
"""The trace keeps regret at this many evenly spaced decisions; the last three decades and the one
before them are among these."""
PROBLEMS: Mapping[str, Bernoulli | SparseBernoulli] = {
    "K = 10, Beta(1, 9)": Bernoulli(10, 1, 9),
    "K = 10, Beta(1, 1)": Bernoulli(10, 1, 1),
    "K = 2, 0.5 and 0.45": SparseBernoulli(2, 1, 0.5, 0.45),
    "K = 10, one of 0.1 and nine of 0.05": SparseBernoulli(10, 1, 0.1, 0.05),
}
DRAWN, TWO, SPARSE = tuple(PROBLEMS)[:2], tuple(PROBLEMS)[2], tuple(PROBLEMS)[3]


class Cell(NamedTuple):
    """One simulation."""

    problem: str
    policy: str
    batch: int
    observations: int
    replicas: int


class Row(NamedTuple):
    """Regret of one cell after ``t`` decisions.

    ``slope`` is the growth of the mean regret since t/10, divided by ln 10: an estimate of
    d regret / d ln t. ``constant`` is Σ_a Δ_a / kl(μ_a, μ*), averaged over the worlds of the cell.
    """

    problem: str
    policy: str
    batch: int
    replicas: int
    seed: int
    t: int
    mean_regret: str
    error: str
    median: str
    largest: str
    slope: str
    slope_error: str
    constant: str


def cells() -> Iterator[Cell]:
    """Yield all simulations of the file; small batches have shorter runs, as they cost more."""
    for policy in ("rcp-adaptive", "imed"):
        yield Cell(TWO, policy, 10, 10**5, 400)
    for problem in (TWO, SPARSE, *DRAWN):
        yield Cell(problem, "rcp-adaptive", 1000, 10**6, 400)
    for policy in ("rcp-adaptive", "imed"):
        yield Cell(TWO, policy, 1, 10**4, 400)
        yield Cell(SPARSE, policy, 10, 10**5, 200)
    for problem in (TWO, *DRAWN):
        yield Cell(problem, "rcp-submax", 1000, 10**6, 400)


def worlds(environment: Bernoulli | SparseBernoulli, replicas: int, seed: int) -> Floats:
    """Return the values ``[R, K]`` that ``simulate`` draws, from the first of its four streams."""
    stream = np.random.SeedSequence(seed).spawn(4)[0]
    return environment.reset(replicas, np.random.Generator(np.random.SFC64(stream)))


def lower_bound_constant(values: Floats) -> Floats:
    """Return Σ_a Δ_a / kl(μ_a, μ*) over the arms below the best, ``[R, K] -> [R]``."""
    best = values.max(axis=1, keepdims=True)
    worse = values < best
    apart = divergence(values, np.broadcast_to(best, values.shape))
    result: Floats = np.where(worse, (best - values) / np.where(worse, apart, 1.0), 0.0).sum(axis=1)
    return result


def rows(cell: Cell, seed: int = SEED) -> list[Row]:
    """Run one simulation, and return its rows at a hundredth, at a tenth and at the end."""
    environment = PROBLEMS[cell.problem]
    trace = simulate(
        environment,
        make_policy(cell.policy),
        observations=cell.observations,
        replicas=cell.replicas,
        delay=BatchedRewards(cell.batch),
        seed=seed,
        points=POINTS,
    )
    constant = float(lower_bound_constant(worlds(environment, cell.replicas, seed)).mean())
    at = {int(step): trace.accumulated_regret[:, place] for place, step in enumerate(trace.steps)}
    found = []
    for t in (cell.observations // 100, cell.observations // 10, cell.observations):
        regret, slope = at[t], (at[t] - at[t // 10]) / math.log(10)
        numbers = (
            f"{regret.mean():.1f}",
            f"{_error(regret):.1f}",
            f"{np.median(regret):.1f}",
            f"{regret.max():.0f}",
            f"{slope.mean():.2f}",
            f"{_error(slope):.2f}",
            f"{constant:.2f}",
        )
        names = (cell.problem, cell.policy, cell.batch, cell.replicas, seed, t)
        found.append(Row(*names, *numbers))
    return found


def main(words: Sequence[str] | None = None) -> None:
    """Run the chosen cells, and write the file after each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problem", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--policy", nargs="+", default=["rcp-adaptive", "imed", "rcp-submax"])
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 10, 1000])
    given = parser.parse_args(words)
    chosen = [
        cell
        for cell in cells()
        if cell.problem in given.problem
        and cell.policy in given.policy
        and cell.batch in given.batch
    ]
    if not chosen:
        parser.error("no simulation has this problem, policy and batch: choose from cells()")
    for cell in chosen:
        _replace(rows(cell))


def _error(values: Floats) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values))


def _replace(new: Sequence[Row]) -> None:
    """Write the rows to the file, in the place of those of the same cell."""
    known: dict[tuple[str, ...], list[list[str]]] = {}
    if FILE.exists():
        with FILE.open(newline="") as file:
            lines = list(csv.reader(file))[1:]
        for key, group in itertools.groupby(lines, key=lambda line: tuple(line[:3])):
            known[key] = list(group)
    written = [[str(number) for number in row] for row in new]
    known[tuple(written[0][:3])] = written
    with FILE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        writer.writerows(itertools.chain.from_iterable(known.values()))


if __name__ == "__main__":
    main()
