"""How long single decisions take in a simulation: steppers, the plain contract, and a peer.

``python benchmarks/policies/single_steps.py`` prints the table; ``--peer mabwiser`` also runs
another library, and ``--before FOLDER`` the sources of another checkout, such as one of commit
529d753, the last one without steppers. All times are processor times.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring.peer_runs import PeerUnavailableError, ask, bandit_peers
from submax.core.policy import Policy, WrapperPolicy
from submax.core.problem import Feedback
from submax.environments.arms import Bernoulli
from submax.policies import make_policy
from submax.simulation.simulate import simulate
from submax.simulation.trace import Recorder

POLICIES = ("thompson-1-1", "rcp-submax", "ucb1", "epsilon-greedy-0.1", "rcp-adaptive")
ENVIRONMENT = Bernoulli(10, 1, 9)
REPLICAS = 20
REPEATS = 3
"""Every run is repeated, and the fastest counts."""


@dataclass(frozen=True)
class WithoutStepper(WrapperPolicy):
    """Another policy, simulated by ``act`` and ``update``."""

    policy: Policy[Any]

    def stepper(self, problem: object, replicas: int, rng: np.random.Generator) -> None:
        return None


def contract_loop(policy: Policy[Any], observations: int) -> None:
    """Take single decisions by the methods of the contract, each one checked and recorded."""
    rng, problem = np.random.default_rng(0), ENVIRONMENT.problem
    world = ENVIRONMENT.reset(REPLICAS, rng)
    state = policy.init(problem, REPLICAS, rng)
    recorder = Recorder(observations, 500, REPLICAS, problem.space)
    for _ in range(observations):
        context = ENVIRONMENT.contexts(world, 1, rng)
        action, log_prob = policy.act(state, context, rng)
        problem.check_action(action)
        state = policy.record(state, action)
        reward, mean = ENVIRONMENT.outcome(world, context, action, rng)
        problem.scale.check(reward)
        recorder.add(action, reward, ENVIRONMENT.best_reward(world, context) - mean)
        feedback = Feedback(context, action, reward, log_prob, np.ones(reward.shape))
        state = policy.update(state, feedback, rng)


def simulated(policy: Policy[Any], observations: int) -> None:
    """Take the same decisions by ``simulate``."""
    simulate(ENVIRONMENT, policy, observations=observations, replicas=REPLICAS)


def microseconds(run: Callable[[], None], observations: int) -> float:
    """The processor time of one decision of all replicas, in microseconds."""
    spent = []
    for _ in range(REPEATS):
        begin = time.process_time()
        run()
        spent.append(time.process_time() - begin)
    return min(spent) / observations * 1e6


TIMED = """
import sys, time
from submax.policies import make_policy
from submax.environments.arms import Bernoulli
from submax.core.environment import Environment
from submax.core.problem import Problem
from submax.core.spaces import Slots
from submax.simulation.delays import Lag
from submax.simulation.simulate import simulate
import numpy as np

class Additive(Environment):
    \"\"\"Joint choices whose success probability is the mean of one number for each choice.\"\"\"
    sizes = (4, 8, 8, 16)
    problem = Problem(Slots(sizes))
    def reset(self, replicas, rng):
        return [rng.beta(1, 9, size=(replicas, size)) for size in self.sizes]
    def contexts(self, world, count, rng):
        return np.zeros((len(world[0]), count, 0))
    def mean_reward(self, world, context, action):
        parts = [np.take_along_axis(part, action[..., slot], 1) for slot, part in enumerate(world)]
        return np.mean(parts, axis=0)
    def reward(self, world, context, action, rng):
        mean = self.mean_reward(world, context, action)
        return (rng.random(mean.shape) < mean).astype(float)
    def best_reward(self, world, context):
        best = np.mean([part.max(axis=1) for part in world], axis=0)
        return np.broadcast_to(best[:, None], context.shape[:2])

name, count, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
lagged = name == "hill-climbing-thompson"
environment, delay = (Additive(), Lag(50)) if lagged else (Bernoulli(10, 1, 9), Lag(0))
spent = []
for _ in range(repeats):
    begin = time.process_time()
    simulate(environment, make_policy(name), observations=count, replicas=20, delay=delay)
    spent.append(time.process_time() - begin)
print(min(spent) / count * 1e6)
"""
"""The same program is run with both sources; it imports only what both of them have."""
COMPARED = {
    "thompson-1-1": (20_000, 2000),
    "rcp-submax": (20_000, 2000),
    "rcp-adaptive": (3000, 300),
    "hill-climbing-thompson": (400, 70),
}
"""The policies that are compared with other sources, and decisions of a run with new and old
sources. A decision of the old sources takes the same time in a long run; new ones are faster in a
long run, because many decisions are then computed together. Hill climbing has slots and a lag of
50, and the 50 decisions before the first reward cost little, so that its ratio is understated."""


def compare_sources(before: Path) -> None:
    """Print microseconds of a decision of all replicas with both sources, and their ratio."""
    sources = Path(__file__).resolve().parents[2] / "src"
    print(f"\n{'policy':<26}{'before µs':>12}{'now µs':>10}{'ratio':>8}")
    for name, (now_count, before_count) in COMPARED.items():
        now = _timed(sources, name, now_count)
        old = _timed(before, name, before_count)
        print(f"{name:<26}{old:>12.1f}{now:>10.1f}{old / now:>8.1f}", flush=True)


def _timed(sources: Path, name: str, count: int) -> float:
    words = [sys.executable, "-W", "ignore", "-c", TIMED, name, str(count), "2"]
    settings = {**os.environ, "PYTHONPATH": str(sources)}
    done = subprocess.run(words, env=settings, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    """Print a table of microseconds and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--observations", type=int, default=3000)
    parser.add_argument("--peer", choices=bandit_peers(), help="also run this library")
    parser.add_argument("--before", type=Path, help="compare with these sources, and nothing else")
    options = parser.parse_args()
    if options.before:
        compare_sources(options.before)
        return
    count = options.observations
    print(f"{'policy':<20}{'loop µs':>10}{'no stepper':>12}{'simulate':>10}{'ratio':>8}")
    rates = {}
    for name in POLICIES:
        policy, few = make_policy(name), count // 6 if name == "rcp-adaptive" else count
        runs = [
            lambda policy=policy, few=few: contract_loop(policy, few),
            lambda policy=policy, few=few: simulated(WithoutStepper(policy), few),
            lambda policy=policy, few=few: simulated(policy, few),
        ]
        loop, plain, fast = (microseconds(run, few) for run in runs)
        rates[name] = REPLICAS / fast * 1e6
        print(f"{name:<20}{loop:>10.1f}{plain:>12.1f}{fast:>10.1f}{loop / fast:>8.1f}")
    if options.peer:
        _print_peer(options.peer, rates)


def _print_peer(peer: str, rates: dict[str, float]) -> None:
    """Print how many decisions a second a peer takes, and how many times as many ours takes."""
    try:
        found = ask(peer, "--single")
    except PeerUnavailableError as error:
        print(f"{peer} does not run here: {error}")
        return
    for one in found:
        ours = next((name for name in rates if name[:4] in one.policy.lower()), "rcp-submax")
        ratio = rates[ours] / one.rate
        print(
            f"{peer} {one.version}, {one.policy}: {one.rate:.0f} decisions/s; "
            f"{ours}: {rates[ours]:.0f} decisions/s, {ratio:.1f} times as many"
        )


if __name__ == "__main__":
    main()
