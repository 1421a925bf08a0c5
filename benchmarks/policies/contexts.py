"""Time and memory of the default policy with a context, and how they grow with the rows learned.

Ten arms, contexts of twenty numbers, rewards 0 and 1 whose probability depends on the arm and the
context. Timing starts after the feature map is fixed, at 2000 rows; until then updates take seconds
in total. Rows wait until they are a twentieth of all rows, or 500, so that the mean of 15 updates
counts. Two more runs begin without any row: 2000 single decisions with ten numbers, and 3000 in
batches of 100 with 64 numbers and eight arms. Everything runs on one core; time is processor time.
Memory is measured in a separate process.
"""

import os

# Set before numpy is imported, because the benchmark measures a single core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import resource
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import Claim, at_most, print_claims, print_table, seconds
from submax.core.problem import Feedback, Problem
from submax.core.spaces import Arms
from submax.policies import make_policy

NUMBERS = 20
"""The width of the context."""
ROWS = 100
"""The number of new rows in a timed update."""
EARLIER_ROWS = (3_000, 30_000, 300_000, 1_000_000)
"""The numbers of rows that were learned before the timed updates."""
CALLS, UPDATES = 2000, 15
"""How many decisions and updates are timed."""


def measure() -> list[Claim]:
    """Print the growth and return the claims."""
    learner, updates = Learner(10), dict[int, float]()
    for earlier in EARLIER_ROWS:
        learner.learn(earlier - learner.rows, piece=20_000)
        updates[earlier] = 1e3 * learner.update_seconds()
    rows = [(f"{earlier:,}", f"{taken:.1f}") for earlier, taken in updates.items()]
    print_table("Milliseconds of an update with 100 new rows", ("rows before", "ms"), rows)
    decide = 1e6 * learner.decide_seconds()
    growth = updates[EARLIER_ROWS[-1]] / updates[EARLIER_ROWS[0]]
    ratio = memory(10, 300_000) / memory(10, 10_000)
    single, wide = from_the_start(10, 10, 1, 2000), from_the_start(8, 64, 100, 3000)
    first = "a decision and its update, the first 2000, 10 arms and 10 numbers"
    return [
        at_most(first, 1e3 * single, 0.6, "ms"),
        at_most(
            "an update with 100 rows, the first 30, 8 arms and 64 numbers", 1e3 * wide, 60, "ms"
        ),
        at_most("a decision, 10 arms and 20 numbers", decide, 60, "µs"),
        at_most("an update with 100 rows", max(updates.values()), 20, "ms"),
        at_most("an update after 10⁶ rows, times one after 3000", growth, 1.5),
        at_most("memory after 300,000 rows, times that after 10,000", ratio, 1.1),
        at_most("memory of 500 arms and 20 numbers", memory(500, 10_000), 300, "MB"),
    ]


class Learner:
    """The default policy, and a simulated world that it learns from."""

    def __init__(self, arms: int) -> None:
        self._rng = np.random.default_rng(0)
        self._policy = make_policy("rcp-adaptive")
        self._slopes = self._rng.normal(size=(arms, NUMBERS)) / 4
        self.state: Any = self._policy.init(Problem(Arms(arms), NUMBERS), 1, self._rng)
        self.rows = 0

    def learn(self, rows: int, piece: int) -> None:
        """Learn from ``rows`` uniform decisions, at most ``piece`` of them in one update."""
        while rows > 0:
            size = min(rows, piece)
            self.state = self._policy.update(self.state, self._feedback(size), self._rng)
            self.rows, rows = self.rows + size, rows - size

    def update_seconds(self) -> float:
        """The mean time of several consecutive updates."""
        taken = []
        for _ in range(UPDATES):
            feedback = self._feedback(ROWS)
            begin = process_time()
            self.state = self._policy.update(self.state, feedback, self._rng)
            taken.append(process_time() - begin)
            self.rows += ROWS
        return statistics.fmean(taken)

    def decide_seconds(self) -> float:
        """The median time of many single decisions."""
        context = self._rng.normal(size=(CALLS, 1, 1, NUMBERS))
        return statistics.median(
            seconds(partial(self._policy.act, self.state, one, self._rng)) for one in context
        )

    def _feedback(self, rows: int) -> Feedback:
        arms = len(self._slopes)
        context = self._rng.normal(size=(1, rows, NUMBERS))
        arm = self._rng.integers(arms, size=(1, rows))
        logit = np.einsum("rnd,rnd->rn", context, self._slopes[arm])
        reward = (self._rng.random((1, rows)) < 1 / (1 + np.exp(-logit))).astype(np.float64)
        shape = (1, rows)
        return Feedback(
            context, arm[..., None], reward, np.full(shape, -np.log(arms)), np.ones(shape)
        )


def from_the_start(arms: int, numbers: int, batch: int, decisions: int) -> float:
    """The mean time of a batch of decisions with its update, in a logistic world."""
    rng, policy = np.random.default_rng(0), make_policy("rcp-adaptive")
    slopes = 2 * rng.normal(size=(arms, numbers)) / numbers**0.5
    state: Any = policy.init(Problem(Arms(arms), numbers), 1, rng)
    spent = 0.0
    for _ in range(0, decisions, batch):
        context = rng.normal(size=(1, batch, numbers))
        begin = process_time()
        chance = policy.probabilities(state, context)
        spent += process_time() - begin
        arm = (rng.random((1, batch, 1)) > chance.cumsum(axis=-1)[..., :-1]).sum(axis=-1)
        log_prob = np.log(np.take_along_axis(chance, arm[..., None], axis=-1)[..., 0])
        logit = np.einsum("rnd,rnd->rn", context, slopes[arm])
        reward = (rng.random((1, batch)) < 1 / (1 + np.exp(-logit))).astype(np.float64)
        feedback = Feedback(context, arm[..., None], reward, log_prob, np.ones((1, batch)))
        begin = process_time()
        state = policy.update(state, feedback, rng)
        spent += process_time() - begin
    return spent * batch / decisions


def memory(arms: int, rows: int) -> float:
    """The peak memory, in megabytes, of a process that learns from ``rows`` rows."""
    done = subprocess.run(
        [sys.executable, __file__, str(arms), str(rows)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        Learner(int(sys.argv[1])).learn(int(sys.argv[2]), piece=1000)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    else:
        print_claims(measure())
