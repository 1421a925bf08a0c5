"""The simulated world of the demo: who visits a shop, what they buy, and when that is known."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

NAME = "demo"
"""The name of the bandit."""
ACTIONS = ("plain", "bold", "playful", "slow", "broken")
BEFORE = {"plain": 0.10, "bold": 0.30, "playful": 0.15, "slow": 0.25, "broken": 0.0}
"""The chance that a visitor buys, by headline, before the drift."""
AFTER = {"plain": 0.10, "bold": 0.05, "playful": 0.35, "slow": 0.25, "broken": 0.0}
"""The same after the drift: the best headline has become the worst."""
QUICK, SLOW = (0.2, 2.0), (3.0, 8.0)
"""Seconds, from and to, after which a purchase is known: of most headlines, and of ``slow``."""
REWARD_WAIT = 5.0
"""Seconds after which a decision is learned from: three fifths of the purchases by ``slow`` come
later, and are counted as late."""


class VisitOutcome(NamedTuple):
    """What a visitor did: the reward, and the seconds until it is known; no reward: None."""

    reward: float | None
    delay: float


@dataclass(frozen=True)
class DemoWorld:
    """A shop with five headlines, whose visitors change their taste every ``half_time`` seconds.

    The headline ``slow`` is the second best, but its purchases are known late. The headline
    ``broken`` never gets a reward, as if its button did not work.
    """

    half_time: float

    def declaration(self) -> dict[str, Any]:
        """The bandit, as it is declared.

        It forgets, because visitors change: a row counts half after 350 more. A tenth of the
        visitors always see the plain headline, so that the gain can be measured.
        """
        return {
            "actions": list(ACTIONS),
            "policy": {
                "kind": "reward-conditioned",
                "strategy": "submax",
                "estimator": {"kind": "counting", "memory": {"discount": 0.998}},
            },
            "reward_wait": REWARD_WAIT,
            "default_reward": 0.0,
            "refit_rows": 20,
            "refit_seconds": 1.0,
            "guard_rails": {"minimum": 0.05, "holdout": 0.1, "baseline": "plain"},
        }

    def drifted(self, seconds: float) -> bool:
        """Whether visitors have the second taste at this time."""
        return int(seconds // self.half_time) % 2 == 1

    def chance(self, action: str, seconds: float) -> float:
        """The chance that a visitor who sees the headline buys, ``seconds`` after the begin."""
        return (AFTER if self.drifted(seconds) else BEFORE)[action]

    def outcome(self, action: str, seconds: float, rng: np.random.Generator) -> VisitOutcome:
        """What a visitor does. One who does not buy is known as such only by waiting."""
        bought = rng.random() < self.chance(action, seconds)
        low, high = SLOW if action == "slow" else QUICK
        return VisitOutcome(1.0 if bought else None, float(rng.uniform(low, high)))
