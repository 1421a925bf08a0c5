"""river: one ``pull`` for a decision, one ``update`` for a reward; it has no batches."""

from problem import ARMS, report
from river import bandit

ARM_IDS = list(range(ARMS))


class RiverPlayer:
    """One policy of river."""

    def __init__(self, policy: bandit.base.Policy) -> None:
        self._policy = policy

    def decide(self, count: int) -> list[int]:
        """Ask ``count`` times."""
        return [self._policy.pull(ARM_IDS) for _ in range(count)]

    def learn(self, arms: list[int], rewards: list[float]) -> None:
        """Update once for each reward."""
        for arm, reward in zip(arms, rewards, strict=True):
            self._policy.update(arm, reward)


if __name__ == "__main__":
    report(
        "river",
        {
            "epsilon-greedy": lambda seed: RiverPlayer(bandit.EpsilonGreedy(0.1, seed=seed)),
            # Its documentation: delta = 1 is UCB1.
            "ucb1": lambda seed: RiverPlayer(bandit.UCB(delta=1, seed=seed)),
        },
    )
