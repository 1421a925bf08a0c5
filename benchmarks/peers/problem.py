"""The problem of ``throughput.py`` for the peers: one replica after the other.

With ``--single`` it is that of ``single_steps.py``: 10 arms, and every reward comes at once.

All peers do the same: draw the success probabilities of the arms, then decide a batch, draw its
rewards, learn. No peer can decide for several replicas together.
"""

import json
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from time import process_time
from typing import Protocol

import numpy as np

SINGLE = "--single" in sys.argv
ARMS = 10 if SINGLE else 100
ALPHA, BETA = 1.0, 9.0
BATCH = 1 if SINGLE else 100
OBSERVATIONS = 5000
REPLICAS = 4
"""Enough to measure a rate: peers take about half a second for these."""


class Player(Protocol):
    """A policy of a peer, called in the way that is fastest for it."""

    def decide(self, count: int) -> list[int]:
        """The arms of ``count`` decisions, taken before any of their rewards is known."""

    def learn(self, arms: list[int], rewards: list[float]) -> None:
        """Learn the rewards of the arms that were decided last."""


def report(distribution: str, policies: Mapping[str, Callable[[int], Player]]) -> None:
    """Print one line of JSON for each policy; a policy is made from a seed."""
    for policy, make in policies.items():
        begin = process_time()
        for seed in range(REPLICAS):
            play(make(seed), np.random.default_rng(seed))
        result = {
            "peer": distribution,
            "version": metadata.version(distribution),
            "policy": policy,
            "decisions": REPLICAS * OBSERVATIONS,
            "seconds": process_time() - begin,
        }
        print(json.dumps(result))


def play(player: Player, rng: np.random.Generator) -> None:
    """Play one replica, from the first decision to the last."""
    probability = rng.beta(ALPHA, BETA, size=ARMS)
    for _ in range(OBSERVATIONS // BATCH):
        arms = player.decide(BATCH)
        rewards = (rng.random(BATCH) < probability[arms]).astype(np.float64)
        player.learn(arms, rewards.tolist())
