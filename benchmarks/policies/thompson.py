"""Thompson sampling of batches with computed probabilities, against plain posterior sampling.

500 arms, 100 replicas. ``Thompson.act`` computes the probability that each arm is the largest and
draws a batch from it. Plain sampling draws a Beta variable for every arm and every decision and
takes the largest. Both decide from the same posteriors, in turn on the same core; time is processor
time, the shortest of several rounds. The time of plain sampling is proportional to the number of
replicas, so that it is measured on every tenth replica and scaled up.
"""

import os

# Set before numpy is imported, because the benchmark measures a single core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring.claim import Claim, print_claims, print_table
from measuring.stopwatch import seconds
from submax.core.arrays import Floats
from submax.core.problem import Feedback
from submax.environments.arms import Bernoulli
from submax.policies import make_policy
from submax.policies.arm_statistics import ArmStatistics
from submax.policies.thompson import Thompson

ARMS = 500
REPLICAS = 100
WORLDS = Bernoulli(ARMS, 1.0, 9.0)
POLICIES = ("thompson-1-1", "thompson-1-9", "thompson-1-99")
OBSERVATIONS = (0, 500, 2500, 5000)
BATCHES = (100, 500, 1000)
FEEDBACK_BATCH = 100
"""Feedback of the runs comes back in batches of this size."""
REPLICA_STEP = 10
"""Plain sampling is timed on one replica out of this number."""
ROUNDS = 3
LIMIT = 4.0
"""The least factor by which batches must be faster than plain sampling."""


class Case(NamedTuple):
    """A policy and its state; ``claimed`` is whether the limit is promised for it."""

    name: str
    policy: Thompson
    state: ArmStatistics
    claimed: bool = True


def measure() -> list[Claim]:
    """Print the table of ratios and return the claim."""
    rows, ratios = [], []
    for case in cases():
        found = [ratio(case, batch) for batch in BATCHES]
        print(f"{case.name}: {', '.join(f'{value:.1f}' for value in found)}", flush=True)
        rows.append((case.name, *(f"{value:.1f}" for value in found)))
        ratios += found if case.claimed else []
    columns = ("posteriors", *(f"batch of {batch}" for batch in BATCHES))
    print_table("Times faster than plain sampling, 500 arms", columns, rows)
    smallest = min(ratios)
    return [
        Claim(
            "Thompson batches, times faster than plain sampling, smallest",
            f"{smallest:.1f}",
            f"at least {LIMIT:.0f}",
            smallest >= LIMIT,
        )
    ]


def ratio(case: Case, batch: int) -> float:
    """The time of plain sampling divided by that of ``act``."""
    rng = np.random.default_rng(1)
    context = np.zeros((REPLICAS, batch, 0))
    a, b = posterior(case)
    some_a, some_b = a[::REPLICA_STEP], b[::REPLICA_STEP]
    act, plain = np.inf, np.inf
    for _ in range(ROUNDS):
        act = min(act, seconds(lambda: case.policy.act(case.state, context, rng)))
        plain = min(plain, seconds(lambda: _plain(some_a, some_b, batch, rng)))
    return plain * REPLICA_STEP / act


def cases() -> Iterator[Case]:
    """Every policy at several times of a run, and two states in which no two arms are equal."""
    for name in POLICIES:
        policy = make_policy(name)
        assert isinstance(policy, Thompson)
        for observations, state in _moments(policy):
            yield Case(f"{name} after {observations}", policy, state)
    rng = np.random.default_rng(2)
    worlds = WORLDS.reset(REPLICAS, rng)
    yield Case("all different, Beta(1, 9) arms", Thompson(), _all_different(worlds, rng))
    # The worst case: each of the 500 arms may be the best, and none can be left out. A policy that
    # learns does not reach such a state, so that the case is printed without a claim.
    alike = _all_different(np.full_like(worlds, 0.1), rng)
    yield Case("no promise: all different, equally good", Thompson(), alike, claimed=False)


def posterior(case: Case) -> tuple[Floats, Floats]:
    """Parameters of the Beta posteriors, ``[R, K]`` each, for rewards 0 and 1."""
    state, policy = case.state, case.policy
    return policy.alpha + state.rewards, policy.beta + state.pulls - state.rewards


def _moments(policy: Thompson) -> Iterator[tuple[int, ArmStatistics]]:
    """The state of the policy after each number of ``OBSERVATIONS`` in a run."""
    rng = np.random.default_rng(1)
    worlds = WORLDS.reset(REPLICAS, rng)
    state = policy.init(WORLDS.problem, REPLICAS, rng)
    context = np.zeros((REPLICAS, FEEDBACK_BATCH, 0))
    for observed in range(0, max(OBSERVATIONS) + 1, FEEDBACK_BATCH):
        if observed in OBSERVATIONS:
            yield observed, state
        action, log_prob = policy.act(state, context, rng)
        reward = WORLDS.reward(worlds, context, action, rng)
        feedback = Feedback(context, action, reward, log_prob, np.ones(reward.shape))
        state = policy.update(state, feedback, rng)


def _all_different(probabilities: Floats, rng: np.random.Generator) -> ArmStatistics:
    """Every arm was pulled between 500 and 999 times, no two of a replica equally often."""
    pulls = rng.permuted(np.tile(np.arange(500.0, 500 + ARMS), (REPLICAS, 1)), axis=1)
    rewards = rng.binomial(pulls.astype(np.int64), probabilities).astype(np.float64)
    return ArmStatistics(WORLDS.problem, pulls, rewards)


def _plain(a: Floats, b: Floats, batch: int, rng: np.random.Generator) -> None:
    for row in range(len(a)):
        rng.beta(a[row], b[row], size=(batch, ARMS)).argmax(axis=-1)


if __name__ == "__main__":
    print_claims(measure())
