"""The problem of ``throughput.py`` for the peers: ``arms.py PEER`` plays it in the peer's Python.

All peers do the same: draw the success probabilities of the arms, then decide a batch, draw its
rewards, learn, one replica after the other. No peer can decide for several replicas together. Each
is called in the way that is fastest for it.
"""

import json
import random
import sys
from collections.abc import Callable
from importlib import metadata
from time import process_time
from typing import Any, NamedTuple

import numpy as np

ARMS, ALPHA, BETA = 100, 1.0, 9.0
BATCH, OBSERVATIONS = 100, 5000
REPLICAS = 4
"""Enough to measure a rate: peers take about half a second for these."""


class Player(NamedTuple):
    """A policy of a peer: the arms of so many decisions, and their rewards once they are known."""

    decide: Callable[[int], list[int]]
    learn: Callable[[list[int], list[float]], Any]


def one_by_one(pull: Callable[[], int], update: Callable[[int, float], Any]) -> Player:
    """A policy without batches: a call for each decision and for each reward."""
    return Player(
        lambda count: [pull() for _ in range(count)],
        lambda arms, rewards: [*map(update, arms, rewards)],
    )


def river(policy: str, seed: int) -> Player:
    from river import bandit

    # Its documentation: delta = 1 is UCB1.
    ucb = policy == "ucb1"
    made = bandit.UCB(delta=1, seed=seed) if ucb else bandit.EpsilonGreedy(0.1, seed=seed)
    arms = list(range(ARMS))
    return one_by_one(lambda: made.pull(arms), made.update)


def smpybandits(policy: str, seed: int) -> Player:
    """Its policies are called without its evaluator, which would be slower."""
    from SMPyBandits.Policies import UCB, EpsilonGreedy

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the generator that its policies draw from
    made = UCB(ARMS) if policy == "ucb1" else EpsilonGreedy(ARMS, 0.1)
    made.startGame()
    return one_by_one(made.choice, made.getReward)


def mabwiser(policy: str, seed: int) -> Player:
    """``predict`` with a matrix of n rows gives n independent decisions, faster than n calls."""
    from mabwiser.mab import MAB, LearningPolicy

    # alpha √(2 ln t / n): 1 is UCB1.
    ucb = policy == "ucb1"
    made = LearningPolicy.UCB1(alpha=1) if ucb else LearningPolicy.EpsilonGreedy(0.1)
    bandit, rng, fitted = (
        MAB(list(range(ARMS)), made, seed=seed),
        np.random.default_rng(seed),
        False,
    )

    def decide(count: int) -> list[int]:
        # The first batch is random, because MABWiser predicts only after a fit.
        return bandit.predict(np.zeros((count, 1))) if fitted else rng.integers(ARMS, size=count)

    def learn(arms: list[int], rewards: list[float]) -> None:
        nonlocal fitted
        bandit.partial_fit(np.array(arms), np.array(rewards))
        fitted = True

    return Player(decide, learn)


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
    for policy in ("epsilon-greedy", "ucb1"):
        # The imports are not timed.
        PEERS[peer](policy, 0)
        begin = process_time()
        for seed in range(REPLICAS):
            play(PEERS[peer](policy, seed), np.random.default_rng(seed))
        rate = REPLICAS * OBSERVATIONS / (process_time() - begin)
        name = f"{peer} {metadata.version(peer)}, {policy}"
        print(json.dumps({"policy": name, "rate": rate}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
