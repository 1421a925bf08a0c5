"""MABWiser: ``predict`` and ``partial_fit`` for whole batches.

For policies without context, ``predict`` with a matrix of n rows gives n independent decisions;
that is faster than n calls.
"""

import numpy as np
from mabwiser.mab import MAB, LearningPolicy
from problem import ARMS, report


class MABWiserPlayer:
    """One policy of MABWiser."""

    def __init__(self, policy: LearningPolicy, seed: int) -> None:
        self._bandit = MAB(list(range(ARMS)), policy, seed=seed)
        self._rng = np.random.default_rng(seed)
        self._fitted = False

    def decide(self, count: int) -> list[int]:
        """Predict a batch; the first one is random, because MABWiser predicts only after a fit."""
        if not self._fitted:
            return self._rng.integers(ARMS, size=count).tolist()
        arms = self._bandit.predict(np.zeros((count, 1)))
        # For a single row it returns the arm and no list.
        return [arms] if count == 1 else arms

    def learn(self, arms: list[int], rewards: list[float]) -> None:
        """Learn a batch."""
        self._bandit.partial_fit(np.array(arms), np.array(rewards))
        self._fitted = True


if __name__ == "__main__":
    report(
        "mabwiser",
        {
            "epsilon-greedy": lambda seed: MABWiserPlayer(LearningPolicy.EpsilonGreedy(0.1), seed),
            # alpha √(2 ln t / n): 1 is UCB1.
            "ucb1": lambda seed: MABWiserPlayer(LearningPolicy.UCB1(alpha=1), seed),
        },
    )
