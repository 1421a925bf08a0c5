"""The time of a decision and an update by ``rcp-adaptive``, SubMax and plain Thompson sampling.

100 arms, batches of 100 in the middle of a run, for 100 replicas together and for one replica. A
batch is one ``act`` and one ``update``. Plain Thompson sampling draws a Beta variable for every arm
and every decision and takes the largest. All policies run in turn on one core. Time is processor
time, the shortest of several rounds.
"""

import os

# Set before numpy is imported, because the benchmark measures a single core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import Claim, at_most, print_claims, print_table, seconds
from submax.core.arrays import Floats
from submax.core.policy import Policy
from submax.core.problem import ChosenActions, Feedback
from submax.environments.arms import Bernoulli
from submax.policies import make_policy
from submax.policies.arm_statistics import ArmStatistics

WORLDS = Bernoulli(100, 1.0, 9.0)
BATCH = 100
EARLIER_BATCHES = 20
"""The number of batches that a policy has learned from before the timed one."""
POLICIES = ("rcp-submax", "rcp-adaptive", "thompson-fitted", "thompson-1-1")
PLAIN = "plain Thompson sampling"
LIMITS = {"rcp-submax": 10.0}
"""The most that rcp-adaptive may take, as a multiple of another policy's time; 1 if not listed."""
ROUNDS = 5
REPETITIONS = {100: 3, 1: 100}
"""How many batches are timed in a round, by the number of replicas."""


def measure() -> list[Claim]:
    """Print the microseconds of a batch and return the claims."""
    costs = {replicas: _costs(replicas) for replicas in REPETITIONS}
    rows = [
        (name, *(f"{1e6 * cost[name] / replicas:.0f}" for replicas, cost in costs.items()))
        for name in costs[1]
    ]
    columns = ("policy", *(f"{replicas} at once" for replicas in costs))
    print_table("Microseconds for 100 decisions among 100 arms, each replica", columns, rows)
    ratios = [
        (
            f"rcp-adaptive, times {rival}, {replicas} at once",
            cost["rcp-adaptive"] / cost[rival],
            rival,
        )
        for replicas, cost in costs.items()
        for rival in ("rcp-submax", "thompson-1-1", PLAIN)
        # For one replica plain sampling is faster: it needs only a few calls of numpy.
        if (replicas, rival) != (1, PLAIN)
    ]
    return [at_most(what, ratio, LIMITS.get(rival, 1.0)) for what, ratio, rival in ratios]


def _costs(replicas: int) -> dict[str, float]:
    """The seconds of a batch, by policy."""
    made = {name: make_policy(name) for name in POLICIES}
    tasks = {name: _batch(policy, policy.act, replicas) for name, policy in made.items()}
    tasks[PLAIN] = _batch(made["thompson-1-1"], _plain_thompson, replicas)
    best = dict.fromkeys(tasks, np.inf)
    for _ in range(ROUNDS):
        for name, task in tasks.items():
            times = REPETITIONS[replicas]
            best[name] = min(best[name], seconds(partial(_repeat, task, times)) / times)
    return best


def _plain_thompson(
    state: ArmStatistics, context: Floats, rng: np.random.Generator
) -> ChosenActions:
    """Thompson sampling with a posterior draw for every arm and every decision."""
    a, b = 1 + state.rewards, 1 + state.pulls - state.rewards
    shape = (context.shape[1], *a.shape)
    index = rng.beta(a, b, size=shape).argmax(axis=-1).T
    return ChosenActions(state.problem.space.action(index), None)


def _repeat(task: Callable[[], object], times: int) -> None:
    for _ in range(times):
        task()


def _batch(
    policy: Policy[Any], act: Callable[..., ChosenActions], replicas: int
) -> Callable[[], object]:
    """A function that decides one batch and learns from one, with a state of mid-run."""
    rng = np.random.default_rng(1)
    world = WORLDS.reset(replicas, rng)
    state = policy.init(WORLDS.problem, replicas, rng)
    context = np.zeros((replicas, BATCH, 0))
    for _ in range(EARLIER_BATCHES):
        action, log_prob = act(state, context, rng)
        state = policy.record(state, action)
        reward = WORLDS.reward(world, context, action, rng)
        feedback = Feedback(context, action, reward, log_prob, np.ones(reward.shape))
        state = policy.update(state, feedback, rng)

    def task() -> object:
        act(state, context, rng)
        return policy.update(state, feedback, rng)

    return task


if __name__ == "__main__":
    print_claims(measure())
