"""The half hour before the demo, so that its pages have something to show at once."""

import math
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np

from submax.bandit.rewards import LateRewardWarning
from submax.live.bandits.open import open_bandit
from submax.web.server.demo.world import DemoWorld

PAST_SECONDS = 1800.0
"""How long visitors came before the demo."""
STEPS = 60
"""Steps in which the past is made; after each, a version is fitted."""
VISITS = 75
"""Visits in each step."""


def make_past(file: Path, world: DemoWorld, rng: np.random.Generator) -> None:
    """Declare the bandit of the demo in a new store, and let visitors come in the past."""
    now = [time.time() - PAST_SECONDS]
    bandit = open_bandit(
        file, background=False, clock=lambda: now[0], rng=rng, **world.declaration()
    )
    with bandit, warnings.catch_warnings():
        # One headline has late rewards on purpose.
        warnings.simplefilter("ignore", LateRewardWarning)
        for _ in range(STEPS):
            begin, coming = now[0], defaultdict[int, list[str]](list)
            for one in bandit.decide_many([{}] * VISITS):
                outcome = world.outcome(str(one.action), 0.0, rng)
                if outcome.reward is not None:
                    coming[math.ceil(outcome.delay)].append(one.id)
            # The rewards of a second are sent together, in its middle.
            for second, identifiers in sorted(coming.items()):
                now[0] = begin + second - 0.5
                bandit.reward_many([{"id": one, "value": 1.0} for one in identifiers])
            now[0] = begin + PAST_SECONDS / STEPS
            bandit.refit()
