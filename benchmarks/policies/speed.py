"""Speed of simulations and of the default policy, by processor time on one core.

- ``throughput``: decisions a second of the whole loop (decide, draw the reward, learn): 100 arms,
  feedback in batches of 100.
- ``adaptive``: a batch of 100 decisions and its update in the middle of a run of 100 arms, by
  ``rcp-adaptive``, SubMax and Thompson sampling; for 100 replicas together and for one.
- ``contexts``: decisions and updates of the default with contexts, and how time and memory grow
  with the rows learned. Timing starts after the feature map is fixed, at 2000 rows; rows wait until
  they are a twentieth of all rows, or 500, so that the mean of 15 updates counts.
- ``sweep``: ``submax reproduce bernoulli --jobs 2``, wall time and memory of all its processes.

What is compared runs in turn, and the best of several rounds counts.
"""

import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np

from measuring import (
    Claim,
    alone,
    at_least,
    at_most,
    family,
    megabytes,
    peak_memory,
    print_table,
    seconds,
)
from submax.core.policy import Policy
from submax.core.problem import Feedback
from submax.environments.arms import Bernoulli
from submax.environments.contextual import LogisticContextual
from submax.policies import make_policy
from submax.simulation.delays import BatchedRewards
from submax.simulation.simulate import simulate

ARMS, BATCH, OBSERVATIONS = 100, 100, 5000
WORLDS = Bernoulli(ARMS, 1.0, 9.0)

# Simulations --------------------------------------------------------------------------------------

SIMULATED = (
    *("rcp-optimistic", "rcp-optimized", "rcp-submax", "rcp-iterated-2"),
    *("epsilon-greedy-0.1", "ucb1"),
)
REPLICAS, ROUNDS = 100, 10


def throughput() -> list[Claim]:
    rates = {name: max(rate_of(name) for _ in range(ROUNDS)) for name in SIMULATED}
    rows = [(name, f"{rate / 1e6:.3f}") for name, rate in rates.items()]
    print_table("Throughput on one core", ("policy", "million decisions a second"), rows)
    slowest = min(rates, key=rates.__getitem__)
    return [at_least(f"million decisions a second, {slowest}", rates[slowest] / 1e6, 5.0)]


def rate_of(policy: str) -> float:
    """Decisions per second of one run."""
    size = {"observations": OBSERVATIONS, "replicas": REPLICAS, "delay": BatchedRewards(BATCH)}
    spent = seconds(lambda: simulate(WORLDS, make_policy(policy), seed=1, **size))
    return REPLICAS * OBSERVATIONS / spent


JOBS, PAUSE = 2, 0.1
"""Processes of the sweep, and seconds between two measurements of their memory."""


def sweep() -> list[Claim]:
    print(f"running submax reproduce bernoulli --jobs {JOBS} (some minutes)", flush=True)
    peak, begin = 0.0, perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "submax", "reproduce", "bernoulli"]
        options = ["--out", folder, "--jobs", str(JOBS)]
        with subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL) as process:
            while process.poll() is None:
                peak = max(peak, megabytes(family(process.pid)))
                sleep(PAUSE)
    if process.returncode:
        raise RuntimeError(f"the sweep ended with status {process.returncode}")
    minutes = (perf_counter() - begin) / 60
    # If this is far less than jobs times wall time, the machine was busy with other work.
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"its processes used {(used.ru_utime + used.ru_stime) / 60:.2f} minutes of CPU time")
    return [
        at_most(f"whole Bernoulli sweep, {JOBS} jobs", minutes, 3.0, "minutes"),
        at_most("the same, peak memory of all processes", peak, 1500.0, "MB"),
    ]


# The default policy without a context -------------------------------------------------------------

LIMITS = {"rcp-submax": 10.0}
"""The most that rcp-adaptive may take, as a multiple of another policy's time; 1 if not listed."""
REPETITIONS = {100: 3, 1: 100}
"""How many batches are timed in a round, by the number of replicas."""


def adaptive() -> list[Claim]:
    costs = {replicas: batch_seconds(replicas) for replicas in REPETITIONS}
    rows = [
        (name, *(f"{1e6 * cost[name] / replicas:.0f}" for replicas, cost in costs.items()))
        for name in costs[1]
    ]
    columns = ("policy", *(f"{replicas} at once" for replicas in costs))
    print_table("Microseconds for 100 decisions among 100 arms, each replica", columns, rows)
    return [
        at_most(
            f"rcp-adaptive, times {rival}, {replicas} at once",
            cost["rcp-adaptive"] / cost[rival],
            LIMITS.get(rival, 1.0),
        )
        for replicas, cost in costs.items()
        for rival in ("rcp-submax", "thompson-1-1")
    ]


def batch_seconds(replicas: int) -> dict[str, float]:
    """The seconds of a batch, by policy."""
    names = ("rcp-submax", "rcp-adaptive", "thompson-fitted", "thompson-1-1")
    tasks = {name: batch_of(make_policy(name), replicas) for name in names}
    best, times = dict.fromkeys(tasks, np.inf), REPETITIONS[replicas]
    for _ in range(5):
        for name, task in tasks.items():
            best[name] = min(best[name], sum(seconds(task) for _ in range(times)) / times)
    return best


def batch_of(policy: Policy[Any], replicas: int) -> Callable[[], object]:
    """A function that decides one batch and learns from one, with the state after 20 batches."""
    rng = np.random.default_rng(1)
    world = WORLDS.reset(replicas, rng)
    state = policy.init(WORLDS.problem, replicas, rng)
    context = np.zeros((replicas, BATCH, 0))
    for _ in range(20):
        action, log_prob = policy.act(state, context, rng)
        state = policy.record(state, action)
        reward = WORLDS.reward(world, context, action, rng)
        feedback = Feedback(context, action, reward, log_prob, np.ones(reward.shape))
        state = policy.update(state, feedback, rng)

    def task() -> object:
        policy.act(state, context, rng)
        return policy.update(state, feedback, rng)

    return task


# The default policy with a context ----------------------------------------------------------------

EARLIER_ROWS = (3_000, 30_000, 300_000, 1_000_000)
"""The numbers of rows that were learned before the timed updates."""


def contexts() -> list[Claim]:
    learner, updates = Learner(10, 20), dict[int, float]()
    for earlier in EARLIER_ROWS:
        learner.learn(earlier - learner.rows, piece=20_000)
        updates[earlier] = 1e3 * statistics.fmean(learner.learn(1500, piece=100))
    rows = [(f"{earlier:,}", f"{taken:.1f}") for earlier, taken in updates.items()]
    print_table("Milliseconds of an update with 100 new rows", ("rows before", "ms"), rows)
    decide = statistics.median(learner.decide(1) for _ in range(2000))
    growth = updates[EARLIER_ROWS[-1]] / updates[EARLIER_ROWS[0]]
    ratio = alone(memory, 10, 300_000) / alone(memory, 10, 10_000)
    return [
        at_most("a decision, 10 arms and 20 numbers", 1e6 * decide, 60, "µs"),
        at_most("an update with 100 rows", max(updates.values()), 20, "ms"),
        at_most("an update after 10⁶ rows, times one after 3000", growth, 1.5),
        at_most("memory after 300,000 rows, times that after 10,000", ratio, 1.1),
        at_most("memory of 500 arms and 20 numbers", alone(memory, 500, 10_000), 300, "MB"),
    ]


class Learner:
    """The default policy in a logistic world, which learns from uniform decisions."""

    def __init__(self, arms: int, numbers: int) -> None:
        self._rng, self._policy = np.random.default_rng(0), make_policy("rcp-adaptive")
        self._environment = LogisticContextual(arms, numbers)
        self._world = self._environment.reset(1, self._rng)
        self.state: Any = self._policy.init(self._environment.problem, 1, self._rng)
        self.rows = 0

    def learn(self, rows: int, piece: int) -> list[float]:
        """Learn from uniform decisions, ``piece`` in each update; return the seconds of each."""
        return [self._update(min(piece, rows - done)) for done in range(0, rows, piece)]

    def decide(self, rows: int) -> float:
        """The seconds of deciding in new contexts."""
        context = self._environment.contexts(self._world, rows, self._rng)
        return seconds(partial(self._policy.act, self.state, context, self._rng))

    def _update(self, rows: int) -> float:
        context = self._environment.contexts(self._world, rows, self._rng)
        action = self._environment.problem.space.uniform((1, rows), self._rng)
        reward = self._environment.reward(self._world, context, action, self._rng)
        log_prob = np.full((1, rows), -np.log(self._environment.arms))
        feedback = Feedback(context, action, reward, log_prob, np.ones((1, rows)))
        begin = process_time()
        self.state = self._policy.update(self.state, feedback, self._rng)
        self.rows += rows
        return process_time() - begin


def memory(arms: int, rows: int) -> float:
    """The peak memory of this process after learning from ``rows`` rows."""
    Learner(arms, 20).learn(rows, piece=1000)
    return peak_memory()
