"""The linear programs of all contexts solved together, against one call of scipy for each.

1000 contexts, 64 actions, 8 reward levels with random values. Both solve the same programs on the
same core; time is processor time, the shortest of several rounds. The other solver is
``scipy.optimize.linprog`` (HiGHS). Its time is proportional to the number of contexts, so that it
is measured on 50 contexts and scaled up.
"""

import os

# Set before numpy is imported, because the benchmark measures a single core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


import sys
from pathlib import Path

import numpy as np
from scipy import optimize

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring.claim import Claim, print_claims, print_table
from measuring.stopwatch import seconds
from submax.core.arrays import Floats
from submax.core.conditioning import Table
from submax.research.beyond.linear_program import LinearProgram

CONTEXTS = 1000
ACTIONS = 64
LEVELS = 8
SAMPLE = 50
"""The number of contexts that scipy solves."""
ROUNDS = 5
LIMIT = 2.0
"""The most seconds for all linear programs."""


def measure() -> list[Claim]:
    """Print both times and their ratio, and return the claim."""
    table = random_table(np.random.default_rng(1))
    ours, theirs = np.inf, np.inf
    for _ in range(ROUNDS):
        ours = min(ours, seconds(lambda: LinearProgram().weights(table)))
        theirs = min(theirs, seconds(lambda: one_by_one(table)))
    theirs *= CONTEXTS / SAMPLE
    _check(table)
    rows = (
        ("LinearProgram, all at once", f"{ours:.3f}", "1"),
        ("scipy's linprog, one by one", f"{theirs:.3f}", f"{theirs / ours:.0f}"),
    )
    title = f"{CONTEXTS} linear programs of {ACTIONS} actions and {LEVELS} levels, one core"
    print_table(title, ("solver", "seconds", "times ours"), rows)
    what = f"{CONTEXTS} linear programs of {ACTIONS} actions and {LEVELS} levels, seconds"
    return [Claim(what, f"{ours:.3f}", f"at most {LIMIT:.0f}", bool(ours <= LIMIT))]


def random_table(rng: np.random.Generator) -> Table:
    """Random conditioned probabilities and values, with every reward level observed."""
    return Table(
        probabilities=rng.dirichlet(np.ones(ACTIONS), size=(CONTEXTS, LEVELS)),
        levels=np.tile(np.linspace(0.0, 1.0, LEVELS), (CONTEXTS, 1)),
        prior=np.full((CONTEXTS, LEVELS), 1 / LEVELS),
        values=rng.random((CONTEXTS, LEVELS)),
    )


def one_by_one(table: Table) -> Floats:
    """The optimal values of the first contexts by scipy."""
    pairs = zip(table.probabilities[:SAMPLE], table.values[:SAMPLE], strict=True)
    return np.array([_value(rows, values) for rows, values in pairs])


def _value(rows: Floats, values: Floats) -> float:
    program = optimize.linprog(
        -values,
        A_ub=-rows.T,
        b_ub=np.zeros(ACTIONS),
        A_eq=np.ones((1, LEVELS)),
        b_eq=[1.0],
        bounds=(None, None),
    )
    return -float(program.fun)


def _check(table: Table) -> None:
    """Check that both solvers find the same optimal values."""
    earned = np.einsum("bl,bl->b", LinearProgram().weights(table), table.values)[:SAMPLE]
    assert np.allclose(earned, one_by_one(table), atol=1e-6)


if __name__ == "__main__":
    print_claims(measure())
