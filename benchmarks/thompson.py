"""Deciding batches by Thompson sampling, against plain sampling of the posterior.

500 arms, 100 replicas. ``Thompson.act`` draws a batch from the probability that each arm is the
largest; plain sampling draws a Beta variable for every arm and every decision and takes the
largest. Both decide from the same posteriors, on the same core, by turns; time is processor time,
and the best of several rounds is taken. The cost of plain sampling is proportional to the number
of replicas, so that every tenth of them is enough to know it.
"""

import os

# Before numpy is loaded: one core is what is measured.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from claim import Claim, print_claims, print_table
from stopwatch import seconds
from submax.core.arrays import Floats
from submax.core.contracts.feedback import Feedback
from submax.environments.arms.bernoulli import Bernoulli
from submax.policies import make_policy
from submax.policies.classic.arm_statistics import ArmStatistics
from submax.policies.classic.thompson import Thompson

ARMS = 500
REPLICAS = 100
WORLDS = Bernoulli(ARMS, 1.0, 9.0)
POLICIES = ("thompson-1-1", "thompson-1-9", "thompson-1-99")
OBSERVATIONS = (0, 500, 2500, 5000)
BATCHES = (100, 500, 1000)
LEARNED_IN = 100
"""Feedback of the runs comes back in batches of this size."""
SHARE = 10
"""Plain sampling is timed on one replica of so many."""
ROUNDS = 3
LIMIT = 4.0


class Case(NamedTuple):
    """A policy and what it has seen; ``claimed`` is whether the limit is promised for it."""

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
    """Time of plain sampling over that of ``act``."""
    rng = np.random.default_rng(1)
    context = np.zeros((REPLICAS, batch, 0))
    a, b = posterior(case)
    act, plain = np.inf, np.inf
    for _ in range(ROUNDS):
        act = min(act, seconds(lambda: case.policy.act(case.state, context, rng)))
        plain = min(plain, seconds(lambda: _plain(a[::SHARE], b[::SHARE], batch, rng)))
    return plain * SHARE / act


def cases() -> Iterator[Case]:
    """Every policy at several moments of a run; then two states in which no two arms are equal."""
    for name in POLICIES:
        policy = make_policy(name)
        assert isinstance(policy, Thompson)
        for observations, state in _moments(policy):
            yield Case(f"{name} after {observations}", policy, state)
    rng = np.random.default_rng(2)
    worlds = WORLDS.reset(REPLICAS, rng)
    yield Case("all different, Beta(1, 9) arms", Thompson(), _all_different(worlds, rng))
    # The worst there is: each of the 500 may be the best, and none drops out. No run of a policy
    # that learns comes to this, so that nothing is promised; it is shown for what it is.
    alike = _all_different(np.full_like(worlds, 0.1), rng)
    yield Case("no promise: all different, equally good", Thompson(), alike, claimed=False)


def posterior(case: Case) -> tuple[Floats, Floats]:
    """Parameters of the Beta posteriors, ``[R, K]`` each, for rewards 0 and 1."""
    state, policy = case.state, case.policy
    return policy.alpha + state.rewards, policy.beta + state.pulls - state.rewards


def _moments(policy: Thompson) -> Iterator[tuple[int, ArmStatistics]]:
    """What the policy has seen after so many observations of a run."""
    rng = np.random.default_rng(1)
    worlds = WORLDS.reset(REPLICAS, rng)
    state = policy.init(WORLDS.problem, REPLICAS, rng)
    context = np.zeros((REPLICAS, LEARNED_IN, 0))
    for seen in range(0, max(OBSERVATIONS) + 1, LEARNED_IN):
        if seen in OBSERVATIONS:
            yield seen, state
        action, log_prob = policy.act(state, context, rng)
        reward = WORLDS.reward(worlds, context, action, rng)
        feedback = Feedback(context, action, reward, log_prob, np.ones(reward.shape))
        state = policy.update(state, feedback, rng)


def _all_different(chances: Floats, rng: np.random.Generator) -> ArmStatistics:
    """Every arm pulled between 500 and 999 times, no two of a replica equally often."""
    pulls = rng.permuted(np.tile(np.arange(500.0, 500 + ARMS), (REPLICAS, 1)), axis=1)
    rewards = rng.binomial(pulls.astype(np.int64), chances).astype(np.float64)
    return ArmStatistics(WORLDS.problem, pulls, rewards)


def _plain(a: Floats, b: Floats, batch: int, rng: np.random.Generator) -> None:
    for row in range(len(a)):
        rng.beta(a[row], b[row], size=(batch, ARMS)).argmax(axis=-1)


if __name__ == "__main__":
    print_claims(measure())
