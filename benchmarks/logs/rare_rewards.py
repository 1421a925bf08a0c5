"""Coverage of the default intervals for rare rewards, by `compare`, the function that users call.

    python benchmarks/logs/rare_rewards.py --logs 1000

Logs have 20 arms and 20,000 rows. Policies learn from the first half, and are evaluated on the
second. It is counted how often the interval contains the true value, or a warning is given.
"""

import argparse
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from measuring import print_table
from submax.evaluation.comparison import compare
from submax.evaluation.learning import learn
from submax.evaluation.log import Log

ARMS, ROWS = 20, 20_000
SPREAD = 0.7
"""Standard deviation of the logarithms of the arms' rates."""
POLICIES = ("rcp-submax", "rcp-adaptive", "thompson-1-99")
SEED = 2
"""Kinds of intervals were compared with seed 1."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=1000)
    parser.add_argument("--rates", default="0.001,0.002,0.005,0.02")
    given = parser.parse_args()
    names = ("policy", "estimator", "coverage", "or a warning", "warned", "without a warning")
    for rate in map(float, given.rates.split(",")):
        rng, found = np.random.default_rng([SEED, round(rate * 1e6)]), defaultdict(list)
        for number in range(given.logs):
            for key, outcome in evaluated(rate, number, rng).items():
                found[key].append(outcome)
        rows = [(*key, *cells(np.array(outcomes))) for key, outcomes in found.items()]
        print_table(f"rate {rate:g}: {given.logs} logs of {ROWS} rows, {ARMS} arms", names, rows)


def evaluated(
    rate: float, seed: int, rng: np.random.Generator
) -> dict[tuple[str, str], tuple[bool, bool]]:
    """Simulate a log; return whether each interval covers the truth, and whether it has a warning.

    The keys are a policy and an estimator.
    """
    rates = np.minimum(rate * np.exp(rng.normal(-(SPREAD**2) / 2, SPREAD, ARMS)), 0.9)
    arm = rng.integers(ARMS, size=ROWS)
    reward = (rng.random(ROWS) < rates[arm]) * 1.0
    table = {"action": arm, "reward": reward, "propensity": np.full(ROWS, 1 / ARMS)}
    log = Log.read(table, actions=[str(one) for one in range(ARMS)], rewards="binary")
    first, second = log.split(0.5)
    learned = {name: learn(first, name, seed=seed, keep_rows=0) for name in POLICIES}
    context = log.parts[0].context[:1]
    truth = {name: float(one.probabilities(context)[0] @ rates) for name, one in learned.items()}
    return {
        (one.policy, one.estimator): (
            one.interval.low <= truth[one.policy] <= one.interval.high,
            bool(one.cautions),
        )
        for one in compare(second, learned, trained_elsewhere=True).estimates[1:]
    }


def cells(outcomes: np.ndarray) -> tuple[str, ...]:
    covered, warned = outcomes.T
    quiet = "-" if warned.all() else f"{covered[~warned].mean():.3f}"
    either = (covered | warned).mean()
    return f"{covered.mean():.3f}", f"{either:.3f}", f"{warned.mean():.2f}", quiet


if __name__ == "__main__":
    main()
