"""Coverage of confidence intervals for rare rewards.

    python benchmarks/logs/rare_rewards.py choose --logs 1000
    python benchmarks/logs/rare_rewards.py report --logs 1000

``choose`` compares kinds of intervals on simulated logs; the default of the library was chosen by
it. ``report`` evaluates policies of the library on logs of other seeds, by the function that users
call, and counts how often the interval contains the true value, or a warning is given.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from logs.interval_candidates import CANDIDATES, ONLY_WEIGHTED
from logs.simulated_logs import ARMS, COMMON_RATE, ROWS, SPREAD, simulated_logs
from measuring.claim import print_table
from submax.evaluation.comparison import compare
from submax.evaluation.estimators import make_off_policy
from submax.evaluation.learning import learn
from submax.evaluation.log import Log

RATES = (0.001, 0.002, 0.005, 0.02)
ESTIMATORS = ("ips", "snips", "clipped", "dr", "switch-dr", "dr-shrinkage")
"""Estimators of ``choose``. The interval of dm does not contain the error of its model, and always
has a warning."""
POLICIES = ("rcp-submax", "rcp-adaptive", "thompson-1-99")
CHOOSING_SEED, REPORTING_SEED = 1, 2
BETTING_LOGS = 50
"""Logs on which betting is tried: it takes a thousand times as long as the others."""
Outcome = tuple[bool, float]


def choose(logs: int, rates: tuple[float, ...]) -> None:
    """Print the coverage and the relative width of every candidate."""
    for rate in rates:
        found: dict[tuple[str, str], list[Outcome]] = {}
        for uniform in (True, False):
            for number, log in enumerate(simulated_logs(rate, uniform, logs, CHOOSING_SEED)):
                _add_log(found, log, with_betting=number < BETTING_LOGS)
        print_table(
            f"rate {rate:g}: coverage (width relative to normal), lowest coverage of all policies",
            ("estimator", *CANDIDATES),
            [(name, *(_cell(found, name, one) for one in CANDIDATES)) for name in ESTIMATORS],
        )


def _add_log(found: dict[tuple[str, str], list[Outcome]], log, with_betting: bool) -> None:
    for policy, evidence in log.evidence.items():
        truth = log.truth(policy)
        for name in ESTIMATORS:
            terms = make_off_policy(name).terms(evidence)
            for candidate, compute in CANDIDATES.items():
                if candidate in ONLY_WEIGHTED and name not in ("ips", "snips"):
                    continue
                if candidate == "betting" and not (with_betting and name == "ips"):
                    continue
                low, high = np.clip(compute(terms), 0.0, 1.0)
                outcome = (bool(low <= truth <= high), float(high - low))
                found.setdefault((name, candidate, policy), []).append(outcome)


def _cell(found: dict[tuple[str, str], list[Outcome]], name: str, candidate: str) -> str:
    by_policy = [
        (rows, found[name, "normal", key[2]])
        for key, rows in found.items()
        if key[:2] == (name, candidate)
    ]
    if not by_policy:
        return "-"
    coverage = min(np.mean([one[0] for one in rows]) for rows, _ in by_policy)
    width = np.mean([one[1] for rows, _ in by_policy for one in rows])
    normal = np.mean([one[1] for rows, by in by_policy for one in by[: len(rows)]])
    return f"{coverage:.3f} ({width / normal:.2f})"


def report(logs: int, rates: tuple[float, ...]) -> None:
    """Print the coverage of the default intervals, by the function that users call."""
    for rate in rates:
        found: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
        rng = np.random.default_rng([REPORTING_SEED, round(rate * 1e6)])
        for number in range(logs):
            _evaluate_log(found, rate, number, rng)
        rows = []
        for (policy, estimator), outcomes in found.items():
            covered, warned = np.array(outcomes).T
            quiet = f"{covered[~warned].mean():.3f}" if not warned.all() else "-"
            rows.append(
                (
                    policy,
                    estimator,
                    f"{covered.mean():.3f}",
                    f"{(covered | warned).mean():.3f}",
                    f"{warned.mean():.2f}",
                    quiet,
                )
            )
        names = ("policy", "estimator", "coverage", "or a warning", "warned", "without a warning")
        print_table(f"rate {rate:g}: {logs} logs of {2 * ROWS} rows, {ARMS} arms", names, rows)


def _evaluate_log(
    found: dict[tuple[str, str], list[tuple[bool, bool]]],
    rate: float,
    number: int,
    rng: np.random.Generator,
) -> None:
    rates = np.minimum(rate * np.exp(rng.normal(-(SPREAD**2) / 2, SPREAD, ARMS)), 0.9)
    arm = rng.integers(ARMS, size=2 * ROWS)
    reward = (rng.random(2 * ROWS) < rates[arm]) * 1.0
    propensity = np.full(2 * ROWS, 1 / ARMS)
    names = [str(one) for one in range(ARMS)]
    log = Log.from_arrays(arm, reward, propensity=propensity, actions=names, rewards="binary")
    first, second = log.split(0.5)
    learned = {name: learn(first, name, seed=number, keep_rows=0) for name in POLICIES}
    context = log.parts[0].context[:1]
    truth = {name: float(one.probabilities(context)[0] @ rates) for name, one in learned.items()}
    for one in compare(second, learned, apart=True).estimates[1:]:
        covered = one.interval.low <= truth[one.policy] <= one.interval.high
        found.setdefault((one.policy, one.estimator), []).append((covered, bool(one.cautions)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["choose", "report"])
    parser.add_argument("--logs", type=int, default=1000)
    parser.add_argument("--rates", default=",".join(map(str, RATES)))
    given = parser.parse_args()
    rates = tuple(float(one) for one in given.rates.split(","))
    choose(given.logs, (*rates, COMMON_RATE)) if given.what == "choose" else report(
        given.logs, rates
    )


if __name__ == "__main__":
    main()
