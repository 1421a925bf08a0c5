"""Rivals that identify the best arm, beside other sources."""

from pathlib import Path
from typing import Any

import numpy as np
from rival_sources.history import ARMS, importing, row_feedback

from submax import Arms, Problem
from submax.policies import SuccessiveElimination, TopTwoThompson

DRAWS = 20_000
CONSTANT = 5.0
"""The constant c in the radius of Even-Dar et al., which the other source does not use."""


def top_two_thompson(sources: Path, seed: int) -> str:
    """rovingbandit: the shares of its decisions, which it draws one by one."""
    rng = np.random.default_rng(seed)
    with importing(sources / "rovingbandit" / "src") as get:
        make = get("rovingbandit.policies.top_two_thompson").TopTwoThompson
        peer = make(ARMS, psi=0.5, seed=seed)
        peer.successes, peer.failures = rng.integers(0, 8, size=(2, ARMS)).astype(float)
        drawn = np.array([peer.select_arm() for _ in range(DRAWS)])
    policy = TopTwoThompson(leader=0.5)
    state = policy.init(Problem(Arms(ARMS)), 1, rng)
    for arm in range(ARMS):
        for reward, number in ((1.0, peer.successes[arm]), (0.0, peer.failures[arm])):
            for _ in range(int(number)):
                state = policy.update(state, row_feedback(arm, reward), rng)
    ours = policy.probabilities(state, np.zeros((1, 1, 0)))[0, 0]
    error = np.sqrt(ours * (1 - ours) / DRAWS)
    apart = np.abs(np.bincount(drawn, minlength=ARMS) / DRAWS - ours) / error
    return f"shares of {DRAWS} decisions differ by at most {apart.max():.1f} standard errors"


class _Played:
    """Arms whose rewards are drawn before the game, so that both policies get the same ones."""

    n_arms, reward_min, reward_max, reward_range = ARMS, 0.0, 1.0, 1.0

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        means = np.linspace(0.1, 0.9, ARMS)
        self.rewards = (rng.random((100_000, ARMS)) < means).astype(float)
        self.pulls = np.zeros(ARMS, dtype=int)

    def pull(self, arm: int) -> float:
        self.pulls[arm] += 1
        return float(self.rewards[self.pulls[arm] - 1, arm])


def successive_elimination(sources: Path, seed: int) -> str:
    """armory-lab, with the radius of the paper: when each arm is eliminated."""
    failure = 0.05

    def radius(pulls: int, local: float, reward_range: float = 1.0) -> float:
        return float(np.sqrt(np.log(CONSTANT * ARMS * pulls**2 / failure) / pulls))

    with importing(sources / "armory-lab") as get:
        module = get("armory_lab.algos.successive_elimination")
        module.hoeffding_radius = radius
        played = module.SuccessiveElimination(failure).run(_Played(seed), track_history=False)
    policy, rng, arms = SuccessiveElimination(failure), np.random.default_rng(0), _Played(seed)
    state: Any = policy.init(Problem(Arms(ARMS)), 1, rng)
    while not policy.stopped(state)[0]:
        shares = policy.probabilities(state, np.zeros((1, 1, 0)))[0, 0]
        arm = int(np.flatnonzero(shares)[0])
        state = policy.update(state, row_feedback(arm, arms.pull(arm)), rng)
    same = np.array_equal(arms.pulls, played.pulls_per_arm)
    return (
        f"pulls of the arms until one is left: {arms.pulls.tolist()}, theirs "
        f"{played.pulls_per_arm.tolist()}{', the same' if same else ''}; the arm: "
        f"{policy.recommend(state)[0]}, theirs {played.recommend_arm}"
    )


CHECKS = {
    "top-two-thompson": top_two_thompson,
    "successive-elimination": successive_elimination,
}
"""A comparison for each policy."""
