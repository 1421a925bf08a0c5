"""Measure how fast the expected regret grows, and compare it with the bound of Lai and Robbins.

    python docs/research/sublinear.py
    python docs/research/sublinear.py --policy imed --out imed.csv

The results are in sublinear.csv beside this file. The cells are run one after the other in one
process, for about half an hour in all.
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from submax import BatchedRewards, Bernoulli, SparseBernoulli, make_policy, simulate
from submax.core.arrays import Floats
from submax.core.numerics import standard_error
from submax.policies.ucb import divergence

FILE = Path(__file__).with_name("sublinear.csv")
SEED = 1
POINTS = 1000
"""The trace keeps regret at this many evenly spaced decisions; the last three decades and the one
before them are among these."""
PROBLEMS: dict[str, Bernoulli | SparseBernoulli] = {
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


def lower_bound_constant(environment: Bernoulli | SparseBernoulli, replicas: int) -> float:
    """Return Σ_a Δ_a / kl(μ_a, μ*) over the arms below the best, averaged over the worlds."""
    # The worlds that ``simulate`` draws, from the first of its four streams.
    stream = np.random.SeedSequence(SEED).spawn(4)[0]
    values: Floats = environment.reset(replicas, np.random.Generator(np.random.SFC64(stream)))
    best = values.max(axis=1, keepdims=True)
    worse = values < best
    apart = divergence(values, np.broadcast_to(best, values.shape))
    terms = np.where(worse, (best - values) / np.where(worse, apart, 1.0), 0.0)
    return float(terms.sum(axis=1).mean())


def rows(cell: Cell) -> Iterator[dict[str, Any]]:
    """Run one simulation, and yield its rows at a hundredth, at a tenth and at the end.

    ``slope`` is the growth of the mean regret since t/10, divided by ln 10: an estimate of
    d regret / d ln t.
    """
    environment = PROBLEMS[cell.problem]
    trace = simulate(
        environment,
        make_policy(cell.policy),
        observations=cell.observations,
        replicas=cell.replicas,
        delay=BatchedRewards(cell.batch),
        seed=SEED,
        points=POINTS,
    )
    at = dict(zip(trace.steps.tolist(), trace.accumulated_regret.T, strict=True))
    constant = lower_bound_constant(environment, cell.replicas)
    for t in (cell.observations // 100, cell.observations // 10, cell.observations):
        regret, slope = at[t], (at[t] - at[t // 10]) / math.log(10)
        yield {
            **{name: getattr(cell, name) for name in ("problem", "policy", "batch", "replicas")},
            "seed": SEED,
            "t": t,
            "mean_regret": f"{regret.mean():.1f}",
            "error": f"{standard_error(regret):.1f}",
            "median": f"{np.median(regret):.1f}",
            "largest": f"{regret.max():.0f}",
            "slope": f"{slope.mean():.2f}",
            "slope_error": f"{standard_error(slope):.2f}",
            "constant": f"{constant:.2f}",
        }


def main() -> None:
    """Run the chosen cells, and write the file."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--policy", nargs="+", default=["rcp-adaptive", "imed", "rcp-submax"])
    parser.add_argument("--out", type=Path, default=FILE)
    given = parser.parse_args()
    chosen = [cell for cell in cells() if cell.policy in given.policy]
    table = pd.DataFrame([row for cell in chosen for row in rows(cell)])
    table.to_csv(given.out, index=False)


if __name__ == "__main__":
    main()
