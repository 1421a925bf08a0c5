"""The problem of ``throughput.py`` for the peers: ``arms.py PEER`` plays it in the peer's Python.

All peers do the same: draw the success probabilities of the arms, then decide a batch, draw its
rewards, learn, one replica after the other. No peer can decide for several replicas together. Each
is called in the way that is fastest for it.
"""

import json
import random
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from time import process_time
from typing import Any, Protocol

import numpy as np

ARMS, ALPHA, BETA = 100, 1.0, 9.0
BATCH, OBSERVATIONS = 100, 5000
REPLICAS = 4
"""Enough to measure a rate: peers take about half a second for these."""


class Player(Protocol):
    """A policy of a peer."""

    def decide(self, count: int) -> list[int]:
        """The arms of ``count`` decisions, taken before any of their rewards is known."""

    def learn(self, arms: list[int], rewards: list[float]) -> None:
        """Learn the rewards of the arms that were decided last."""


class OneByOne:
    """A policy without batches: a call for each decision and for each reward."""

    def __init__(self, pull: Callable[[], int], update: Callable[[int, float], Any]) -> None:
        self._pull, self._update = pull, update

    def decide(self, count: int) -> list[int]:
        return [self._pull() for _ in range(count)]

    def learn(self, arms: list[int], rewards: list[float]) -> None:
        for arm, reward in zip(arms, rewards, strict=True):
            self._update(arm, reward)


def river() -> Mapping[str, Callable[[int], Player]]:
    from river import bandit

    arms = list(range(ARMS))

    def player(policy: Any) -> Player:
        return OneByOne(lambda: policy.pull(arms), policy.update)

    return {
        "epsilon-greedy": lambda seed: player(bandit.EpsilonGreedy(0.1, seed=seed)),
        # Its documentation: delta = 1 is UCB1.
        "ucb1": lambda seed: player(bandit.UCB(delta=1, seed=seed)),
    }


def smpybandits() -> Mapping[str, Callable[[int], Player]]:
    """Its policies are called without its evaluator, which would be slower."""
    from SMPyBandits.Policies import UCB, EpsilonGreedy

    def player(policy: Any, seed: int) -> Player:
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - the generator that its policies draw from
        policy.startGame()
        return OneByOne(policy.choice, policy.getReward)

    return {
        "epsilon-greedy": lambda seed: player(EpsilonGreedy(ARMS, 0.1), seed),
        "ucb1": lambda seed: player(UCB(ARMS), seed),
    }


def mabwiser() -> Mapping[str, Callable[[int], Player]]:
    """``predict`` with a matrix of n rows gives n independent decisions, faster than n calls."""
    from mabwiser.mab import MAB, LearningPolicy

    class Whole:
        def __init__(self, policy: Any, seed: int) -> None:
            self._bandit = MAB(list(range(ARMS)), policy, seed=seed)
            self._first: Any = np.random.default_rng(seed)

        def decide(self, count: int) -> list[int]:
            # The first batch is random, because MABWiser predicts only after a fit.
            if self._first is not None:
                return self._first.integers(ARMS, size=count).tolist()
            return self._bandit.predict(np.zeros((count, 1)))

        def learn(self, arms: list[int], rewards: list[float]) -> None:
            self._bandit.partial_fit(np.array(arms), np.array(rewards))
            self._first = None

    return {
        "epsilon-greedy": lambda seed: Whole(LearningPolicy.EpsilonGreedy(0.1), seed),
        # alpha √(2 ln t / n): 1 is UCB1.
        "ucb1": lambda seed: Whole(LearningPolicy.UCB1(alpha=1), seed),
    }


PEERS = {"river": river, "smpybandits": smpybandits, "mabwiser": mabwiser}


def play(player: Player, rng: np.random.Generator) -> None:
    """Play one replica, from the first decision to the last."""
    probability = rng.beta(ALPHA, BETA, size=ARMS)
    for _ in range(OBSERVATIONS // BATCH):
        arms = player.decide(BATCH)
        rewards = (rng.random(BATCH) < probability[arms]).astype(np.float64)
        player.learn(arms, rewards.tolist())


def main(peer: str) -> None:
    """Print a line of JSON for each policy: its decisions per second."""
    for policy, make in PEERS[peer]().items():
        begin = process_time()
        for seed in range(REPLICAS):
            play(make(seed), np.random.default_rng(seed))
        rate = REPLICAS * OBSERVATIONS / (process_time() - begin)
        name = f"{peer} {metadata.version(peer)}, {policy}"
        print(json.dumps({"policy": name, "rate": rate}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
