"""Decisions per second on one core, against a limit and against other bandit libraries.

The whole loop is timed: decide, draw the reward, learn. 100 Bernoulli arms drawn from Beta(1, 9),
feedback in batches of 100, 5000 decisions per replica. Time is processor time, which does not
include other programs on the machine and would include a second core. Rounds of all policies and
all peers alternate, and the best round of each counts.
"""

import os

# Set before numpy is imported, because the benchmark measures a single core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from pathlib import Path
from time import process_time

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring.claim import Claim, print_claims, print_table
from measuring.peer_runs import PeerRate, PeerUnavailableError, ask, bandit_peers, install
from peers.problem import ALPHA, ARMS, BATCH, BETA, OBSERVATIONS
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
ROUNDS = 6
RUNS = 3
"""Runs of each of our policies in a round; several, because they are much shorter than a peer's."""
RATE_LIMIT = 5e6
"""The least decisions per second of every policy."""
RATIO_LIMIT = 100.0
"""The least factor by which every policy must be faster than the fastest peer."""


def measure() -> list[Claim]:
    """Print both tables and return the claims."""
    ours = dict.fromkeys(POLICIES, 0.0)
    theirs: dict[tuple[str, str], PeerRate] = {}
    available = _installed()
    for number in range(1, ROUNDS + 1):
        print(f"round {number} of {ROUNDS}", flush=True)
        for policy in POLICIES:
            ours[policy] = max(ours[policy], *(_rate(policy) for _ in range(RUNS)))
        for peer in list(available):
            try:
                _keep_best(theirs, ask(peer))
            except PeerUnavailableError as reason:
                print(f"{peer} does not run here: {reason}", flush=True)
                available.remove(peer)
    fastest = max(theirs.values(), key=lambda found: found.rate, default=None)
    _print(ours, theirs, fastest)
    return _claims(ours, fastest)


def _installed() -> list[str]:
    found = []
    for peer in bandit_peers():
        try:
            install(peer)
        except PeerUnavailableError as reason:
            print(f"{peer} does not install here: {reason}", flush=True)
        else:
            found.append(peer)
    return found


def _rate(policy: str) -> float:
    """Decisions per second of one run."""
    environment, chosen = Bernoulli(ARMS, ALPHA, BETA), make_policy(policy)
    begin = process_time()
    simulate(
        environment,
        chosen,
        observations=OBSERVATIONS,
        replicas=REPLICAS,
        delay=BatchedRewards(BATCH),
        seed=1,
    )
    return REPLICAS * OBSERVATIONS / (process_time() - begin)


def _keep_best(best: dict[tuple[str, str], PeerRate], found: list[PeerRate]) -> None:
    for new in found:
        key = (new.peer, new.policy)
        if key not in best or new.rate > best[key].rate:
            best[key] = new


def _print(
    ours: dict[str, float], theirs: dict[tuple[str, str], PeerRate], fastest: PeerRate | None
) -> None:
    print_table(
        "Peers",
        ("peer", "version", "policy", "decisions per second"),
        [
            (found.peer, found.version, found.policy, f"{found.rate:,.0f}")
            for found in theirs.values()
        ],
    )
    rows = []
    for policy, rate in ours.items():
        times = f"{rate / fastest.rate:.0f}" if fastest else "no peer"
        rows.append((policy, f"{rate / 1e6:.2f}", f"{RATE_LIMIT / 1e6:.0f}", times))
    columns = ("submax", "million decisions per second", "limit", "times the fastest peer")
    print_table("Throughput on one core", columns, rows)


def _claims(ours: dict[str, float], fastest: PeerRate | None) -> list[Claim]:
    slowest = min(ours, key=ours.__getitem__)
    rate = ours[slowest]
    ratio = rate / fastest.rate if fastest else None
    return [
        Claim(
            "million decisions per second per core, slowest policy",
            f"{rate / 1e6:.2f} ({slowest})",
            f"at least {RATE_LIMIT / 1e6:.0f}",
            rate >= RATE_LIMIT,
        ),
        Claim(
            "times the fastest peer, slowest policy",
            f"{ratio:.0f} ({fastest.peer} {fastest.policy})" if fastest else "no peer ran",
            f"at least {RATIO_LIMIT:.0f}",
            None if ratio is None else ratio >= RATIO_LIMIT,
        ),
    ]


if __name__ == "__main__":
    print_claims(measure())
