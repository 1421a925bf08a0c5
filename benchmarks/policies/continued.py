"""Training from scratch at each update against continuing from the last parameters."""

import itertools
import statistics
from typing import Any

from numpy.typing import NDArray

from measuring.claim import Claim, print_table
from submax.core.numerics import standard_error
from submax.environments.contextual import Contextual
from submax.estimators.network import CVAE
from submax.models.training import Training
from submax.policies.reward_conditioned import RewardConditioned
from submax.simulation.delays import BatchedRewards
from submax.simulation.simulate import Timed, simulate
from submax.strategies.weighted import SubMax

REPLICAS = 20
TRAININGS = {
    "from scratch, 300 steps": Training(300),
    "continued, 300 steps": Training(300, continued=True),
    "continued, 100 steps": Training(100, continued=True),
    "from scratch, 100 steps": Training(100),
}


def measure() -> list[Claim]:
    """Print regret and training time; there is no claim."""
    found = {name: _run(training) for name, training in TRAININGS.items()}
    regret, seconds = found["from scratch, 300 steps"]
    rows = [
        (
            name,
            f"{values.mean():.1f}",
            f"{(values - regret).mean():+.1f} ± {standard_error(values - regret):.1f}"
            if values is not regret
            else "",
            f"{spent / seconds:.2f}",
        )
        for name, (values, spent) in found.items()
    ]
    columns = ("way of training", "regret", "difference, paired", "training time, relative")
    print_table(f"Contextual bandit, shift 0, {REPLICAS} replicas", columns, rows)
    return []


def _run(training: Training) -> tuple[NDArray[Any], float]:
    """Final regrets, and the median seconds of an update, without the first, which compiles."""
    policy = Timed(RewardConditioned(CVAE(hidden=32, training=training), SubMax()))
    spent = [0.0]
    trace = simulate(
        Contextual(shift=0),
        policy,
        observations=10000,
        replicas=REPLICAS,
        delay=BatchedRewards(1000),
        seed=11,
        progress=lambda decisions, updates: spent.append(policy.learning),
    )
    refits = [after - before for before, after in itertools.pairwise(spent)]
    return trace.final_regret, statistics.median(refits[1:])
