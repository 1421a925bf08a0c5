"""The problem of ``throughput.py`` as the peers play it: one replica after the other.

The same for all: draw the chances of the arms, then decide a batch, toss the coins, learn. Peers
decide one replica at a time, since none of them knows more than one.
"""

import json
from collections.abc import Callable, Mapping
from importlib import metadata
from time import process_time
from typing import Protocol

import numpy as np

ARMS = 100
ALPHA, BETA = 1.0, 9.0
BATCH = 100
OBSERVATIONS = 5000
REPLICAS = 4
"""Enough for a rate: peers take about half a second for these."""


class Player(Protocol):
    """A policy of a peer, asked in the way that is fastest for it."""

    def decide(self, count: int) -> list[int]:
        """The arms of ``count`` decisions, taken before any of their rewards is known."""

    def learn(self, arms: list[int], rewards: list[float]) -> None:
        """Take in what came back."""


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
    """One replica, from the first decision to the last."""
    chance = rng.beta(ALPHA, BETA, size=ARMS)
    for _ in range(OBSERVATIONS // BATCH):
        arms = player.decide(BATCH)
        rewards = (rng.random(BATCH) < chance[arms]).astype(np.float64)
        player.learn(arms, rewards.tolist())
