"""Decisions per second on one core, against a limit and against other bandit libraries.

The whole loop is timed: decide, draw the reward, learn. 100 Bernoulli arms drawn from Beta(1, 9),
feedback in batches of 100, 5000 decisions per replica. Time is processor time, which does not
include other programs on the machine and would include a second core. Rounds of all policies and
all peers alternate, and the best round of each counts.
"""

import os

# Set before numpy is imported, because the benchmark measures a single core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import json
import sys
from pathlib import Path

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import (
    Claim,
    PeerUnavailableError,
    at_least,
    print_claims,
    print_table,
    run_peer,
    seconds,
)
from peers.arms import ALPHA, ARMS, BATCH, BETA, OBSERVATIONS, PEERS
from submax.environments.arms import Bernoulli
from submax.policies import make_policy
from submax.simulation.delays import BatchedRewards
from submax.simulation.simulate import simulate

POLICIES = (
    "rcp-optimistic",
    "rcp-optimized",
    "rcp-submax",
    "rcp-iterated-2",
    "epsilon-greedy-0.1",
    "ucb1",
)
REPLICAS = 100
ROUNDS, RUNS = 6, 3
"""Rounds, and runs of our policies in each; several, because they are shorter than a peer's."""
RATE_LIMIT, RATIO_LIMIT = 5.0, 100.0
"""Of our slowest policy: million decisions a second, and multiple of the fastest peer's rate."""


def measure() -> list[Claim]:
    """Print both tables and return the claims."""
    ours, theirs, missing = dict.fromkeys(POLICIES, 0.0), dict[str, float](), set[str]()
    for _ in range(ROUNDS):
        for policy in POLICIES:
            ours[policy] = max(ours[policy], *(rate_of(policy) for _ in range(RUNS)))
        for peer in PEERS.keys() - missing:
            try:
                output = run_peer(peer, "arms.py", peer)
            except PeerUnavailableError as reason:
                print(f"{peer} does not run here: {reason}", flush=True)
                missing.add(peer)
                continue
            # Some peers print warnings of their own on the same stream.
            for line in filter(lambda line: line.startswith("{"), output.splitlines()):
                found = json.loads(line)
                theirs[found["policy"]] = max(theirs.get(found["policy"], 0.0), found["rate"])
    fastest = max(theirs, key=theirs.__getitem__, default="no peer ran")
    slowest = min(ours, key=ours.__getitem__)
    rates = sorted([*ours.items(), *theirs.items()], key=lambda one: -one[1])
    rows = [(name, f"{rate / 1e6:.3f}") for name, rate in rates]
    print_table("Throughput on one core", ("policy", "million decisions a second"), rows)
    ratio = ours[slowest] / theirs[fastest] if theirs else None
    return [
        at_least(f"million decisions a second, {slowest}", ours[slowest] / 1e6, RATE_LIMIT),
        at_least(f"the same, times {fastest}", ratio, RATIO_LIMIT),
    ]


def rate_of(policy: str) -> float:
    """Decisions per second of one run."""
    spent = seconds(
        lambda: simulate(
            Bernoulli(ARMS, ALPHA, BETA),
            make_policy(policy),
            observations=OBSERVATIONS,
            replicas=REPLICAS,
            delay=BatchedRewards(BATCH),
            seed=1,
        )
    )
    return REPLICAS * OBSERVATIONS / spent


if __name__ == "__main__":
    print_claims(measure())
