"""Compares rivals with implementations of other people, row by row on the same history.

``python benchmarks/policies/rival_checks.py --sources FOLDER`` needs checkouts of the repositories
that docs/results/rivals-checks.md lists, each in a folder of the name of the repository; rivals
whose folder is missing are skipped. None of them takes part in a comparison of speed: the script
asks whether they would choose the same arms.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

# The folder of this script, so that its parts can be imported from any folder.
sys.path.insert(0, str(Path(__file__).resolve().parent))

from rival_sources import arm_checks, duel_checks, identification_checks, regression_checks
from rival_sources.history import ARMS, ROWS, importing, ours_by_row, rows

from submax import make_policy
from submax.policies import EXP3, CascadeKLUCB, CascadeUCB

CHECKS = (
    arm_checks.CHECKS | identification_checks.CHECKS | duel_checks.CHECKS | regression_checks.CHECKS
)


def same_choices(policy: Any, peer: Any, seed: int) -> str:
    """Count the rows after which both would take the same arms, ties included."""
    ours, same = ours_by_row(policy, seed), 0
    peer.startGame()
    for row, (arm, reward) in enumerate(zip(*rows(seed), strict=True)):
        peer.getReward(arm, reward)
        if row < ARMS - 1:
            continue
        theirs = np.array([peer.computeIndex(one) for one in range(ARMS)])
        best = np.isclose(theirs, theirs.max(), rtol=0, atol=1e-9)
        same += bool(np.array_equal(best, ours[row] > 0))
    return f"the same arms after {same} of {ROWS - ARMS + 1} rows"


def same_probabilities(policy: Any, peer: Any, seed: int) -> str:
    """Return the largest difference of probabilities."""
    ours, worst = ours_by_row(policy, seed), 0.0
    peer.startGame()
    for row, (arm, reward) in enumerate(zip(*rows(seed), strict=True)):
        peer.getReward(arm, reward)
        worst = max(worst, np.abs(peer.trusts - ours[row]).max())
    return f"probabilities differ by at most {worst:.0e}"


def same_bounds(policy: Any, bound: Callable[..., float], seed: int) -> str:
    """Return the largest difference of the bounds of items."""
    rng, worst = np.random.default_rng(seed), 0.0
    for _ in range(ROWS):
        looked, rounds = int(rng.integers(1, 200)), int(rng.integers(200, 10_000))
        share = rng.integers(looked + 1) / looked
        given = [np.array([[float(number)]]) for number in (share, looked, rounds)]
        theirs = min(bound(share, rounds, looked), 1.0)
        worst = max(worst, abs(min(policy.bound(*given).item(), 1.0) - theirs))
    return f"bounds up to 1 differ by at most {worst:.0e}"


def print_smpybandits(sources: Path, seed: int) -> None:
    """Print the comparisons with SMPyBandits that need nothing but its indices."""
    with importing(sources / "SMPyBandits" / "SMPyBandits" / "Policies") as get:

        def theirs(name: str, **settings: Any) -> Any:
            return getattr(get(name), name)(ARMS, **settings)

        print("exp3:", same_probabilities(EXP3(0.1), theirs("Exp3", gamma=0.1), seed))
        by_index = {
            "ucb1": (make_policy("ucb1"), theirs("UCB")),
            "kl-ucb": (make_policy("kl-ucb"), theirs("klUCB", tolerance=1e-12)),
            "moss": (make_policy("moss"), theirs("MOSS")),
            "bayes-ucb": (make_policy("bayes-ucb-1-1"), theirs("BayesUCB")),
        }
        for name, (policy, peer) in by_index.items():
            print(f"{name}:", same_choices(policy, peer, seed), flush=True)


def print_tutorial(sources: Path, seed: int) -> None:
    """Print the comparisons with the tutorial of Russo et al."""
    with importing(sources / "ts_tutorial" / "src") as get:
        agent = get("cascading.agent_cascading")
        print("cascade-ucb:", same_bounds(CascadeUCB(), agent._ucb_1, seed))
        print("cascade-kl-ucb:", same_bounds(CascadeKLUCB(), agent._kl_ucb, seed), flush=True)


def main() -> None:
    """Print a line for each comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--only", choices=sorted(CHECKS), help="this comparison alone")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # New versions of scipy have another name for this function, which SMPyBandits imports.
    scipy.special.btdtri = scipy.special.betaincinv
    if options.only is None:
        for printed in (print_smpybandits, print_tutorial):
            try:
                printed(options.sources, options.seed)
            except FileNotFoundError as error:
                print(f"skipped: there is no folder {error}")
    for name, check in CHECKS.items():
        if options.only in (None, name):
            try:
                print(f"{name}:", check(options.sources, options.seed), flush=True)
            except FileNotFoundError as error:
                print(f"{name}: skipped, there is no folder {error}")


if __name__ == "__main__":
    main()
