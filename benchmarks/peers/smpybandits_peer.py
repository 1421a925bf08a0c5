"""SMPyBandits: one ``choice`` for a decision, one ``getReward`` for a reward; it has no batches.

Its policies are called directly, without its evaluator, which would be slower.
"""

import random

import numpy as np
from problem import ARMS, report
from SMPyBandits.Policies import UCB, EpsilonGreedy
from SMPyBandits.Policies.BasePolicy import BasePolicy


class SMPyBanditsPlayer:
    """One policy of SMPyBandits."""

    def __init__(self, policy: BasePolicy, seed: int) -> None:
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - the generator that its policies draw from
        self._policy = policy
        self._policy.startGame()

    def decide(self, count: int) -> list[int]:
        """Ask ``count`` times."""
        return [self._policy.choice() for _ in range(count)]

    def learn(self, arms: list[int], rewards: list[float]) -> None:
        """Give one reward after the other."""
        for arm, reward in zip(arms, rewards, strict=True):
            self._policy.getReward(arm, reward)


if __name__ == "__main__":
    report(
        "SMPyBandits",
        {
            "epsilon-greedy": lambda seed: SMPyBanditsPlayer(EpsilonGreedy(ARMS, 0.1), seed),
            "ucb1": lambda seed: SMPyBanditsPlayer(UCB(ARMS), seed),
        },
    )
