"""Compares rivals with implementations of other people, row by row on the same history.

``python benchmarks/policies/rival_checks.py --smpybandits FOLDER --tutorial FOLDER`` needs checkouts
of github.com/SMPyBandits/SMPyBandits and github.com/iosband/ts_tutorial. Both take part in no speed
comparison here: the script asks whether they would choose the same arms.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

from submax import Arms, Feedback, Problem, make_policy
from submax.policies import (
    EXP3,
    CascadeKLUCB,
    CascadeUCB,
    DiscountedUCB,
    SlidingWindowUCB,
)

ARMS, ROWS = 4, 400
DISCOUNT, WINDOW, EXPLORATION = 0.97, 50, 0.6


def rows(seed: int) -> tuple[Any, Any]:
    """Return random arms, each of the first ones once, and rewards 0 and 1."""
    rng = np.random.default_rng(seed)
    arms = np.concatenate([np.arange(ARMS), rng.integers(ARMS, size=ROWS - ARMS)])
    return arms, (rng.random(ROWS) < np.linspace(0.2, 0.8, ARMS)[arms]).astype(float)


def ours_by_row(policy: Any, seed: int) -> Any:
    """Return our probabilities after each row, ``[rows, arms]``."""
    rng, context = np.random.default_rng(0), np.zeros((1, 1, 0))
    state = policy.init(Problem(Arms(ARMS)), 1, rng)
    found = []
    for arm, reward in zip(*rows(seed), strict=True):
        log_prob = np.log(policy.probabilities(state, context)[:, :, arm])
        log_prob = np.maximum(log_prob, -30.0)
        feedback = Feedback(
            context, np.array([[[arm]]]), np.array([[reward]]), log_prob, np.ones((1, 1))
        )
        state = policy.update(state, feedback, rng)
        found.append(policy.probabilities(state, context)[0, 0])
    return np.array(found)


def same_choices(policy: Any, peer: Any, index: Callable[[Any, int], float], seed: int) -> str:
    """Count the rows after which both would take the same arms, ties included."""
    ours, same = ours_by_row(policy, seed), 0
    peer.startGame()
    for row, (arm, reward) in enumerate(zip(*rows(seed), strict=True)):
        peer.getReward(arm, reward)
        if row < ARMS - 1:
            continue
        theirs = np.array([index(peer, one) for one in range(ARMS)])
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


def main() -> None:
    """Print a line for each comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smpybandits", type=Path, required=True)
    parser.add_argument("--tutorial", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    # New versions of scipy have another name for this function, which SMPyBandits imports.
    scipy.special.btdtri = scipy.special.betaincinv
    sys.path.insert(0, str(options.smpybandits / "SMPyBandits" / "Policies"))
    sys.path.insert(0, str(options.tutorial / "src"))
    from BayesUCB import BayesUCB
    from cascading import agent_cascading
    from DiscountedUCB import DiscountedUCB as TheirDiscounted
    from Exp3 import Exp3
    from klUCB import klUCB
    from MOSS import MOSS
    from SlidingWindowUCB import SWUCB
    from UCB import UCB

    seed = options.seed
    print("exp3:", same_probabilities(EXP3(0.1), Exp3(ARMS, gamma=0.1), seed))
    by_index = {
        # Their α stands under the root, in the discounted bound over 2 N.
        "discounted-ucb": (
            DiscountedUCB(DISCOUNT, EXPLORATION),
            TheirDiscounted(ARMS, alpha=8 * EXPLORATION, gamma=DISCOUNT),
        ),
        "sliding-window-ucb": (
            SlidingWindowUCB(WINDOW, EXPLORATION),
            SWUCB(ARMS, tau=WINDOW, alpha=4 * EXPLORATION),
        ),
        "ucb1": (make_policy("ucb1"), UCB(ARMS)),
        "kl-ucb": (make_policy("kl-ucb"), klUCB(ARMS, tolerance=1e-12)),
        "moss": (make_policy("moss"), MOSS(ARMS)),
        "bayes-ucb": (make_policy("bayes-ucb-1-1"), BayesUCB(ARMS)),
    }
    for name, (policy, peer) in by_index.items():
        choices = same_choices(policy, peer, lambda one, arm: one.computeIndex(arm), seed)
        print(f"{name}:", choices)
    print("cascade-ucb:", same_bounds(CascadeUCB(), agent_cascading._ucb_1, seed))
    print("cascade-kl-ucb:", same_bounds(CascadeKLUCB(), agent_cascading._kl_ucb, seed))


if __name__ == "__main__":
    main()
