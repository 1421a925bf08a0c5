"""How long single decisions take in a simulation: steppers, the plain contract, and a peer.

``python benchmarks/policies/single_steps.py`` prints the table; ``--peer mabwiser`` also runs
another library. All times are processor times, and ratios are of runs in one process.
"""

import argparse
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
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.wrapper_policy import WrapperPolicy
from submax.environments.arms.bernoulli import Bernoulli
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


def main() -> None:
    """Print a table of microseconds and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--observations", type=int, default=3000)
    parser.add_argument("--peer", choices=bandit_peers(), help="also run this library")
    options = parser.parse_args()
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
        found = ask(peer)
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
