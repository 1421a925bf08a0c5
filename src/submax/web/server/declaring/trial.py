"""A bandit is tried in memory: it decides, learns from a few rows, and decides again."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from submax.bandit.settings import Settings
from submax.core.errors import Error, InputError, one_line
from submax.core.rewards import Scale
from submax.live.bandits.bandit import LiveBandit
from submax.live.bandits.open import open_bandit
from submax.live.store.memory_store import MemoryStore
from submax.schema.context import ContextSchema, Number

ROWS = 20
"""Rows that the trial learns from: enough to train a network, few enough to be quick."""


class TrialClock:
    """A clock that stands still until it is moved, so that no trial waits for rewards."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def try_declaration(name: str, declaration: Mapping[str, Any]) -> None:
    """Decide, learn from made-up rewards and decide again; raise an error if that fails.

    Guard rails are left out: with a burn-in the policy would not be asked.
    """
    given = {word: value for word, value in declaration.items() if word != "guard_rails"}
    clock = TrialClock()
    bandit = open_bandit(MemoryStore(clock), name=name, background=False, clock=clock, **given)
    try:
        _try(bandit, clock)
    except Error:
        raise
    except Exception as error:
        raise InputError(
            f"the policy failed when it was tried with {ROWS} made-up rows ({one_line(error)}): "
            "declare a policy that can decide and learn with these actions, context and rewards"
        ) from error
    finally:
        bandit.close()


def _try(bandit: LiveBandit, clock: TrialClock) -> None:
    settings, rng = bandit.settings, np.random.default_rng(0)
    parts = settings.reward_parts
    rewards = possible_rewards(settings.scale if parts is None else parts.each_scale)
    for number in range(ROWS):
        decision = bandit.decide(_context(settings.context, rng))
        value = rewards[number % len(rewards)]
        bandit.reward(decision.id, value if parts is None else dict.fromkeys(parts.names, value))
    clock.now += 1.0 + _wait(settings)
    bandit.refit()
    bandit.decide(_context(settings.context, rng))


def _wait(settings: Settings) -> float:
    """Seconds after which all decisions of the trial have matured."""
    return settings.reward_wait or settings.no_reward_after or 0.0


def _context(schema: ContextSchema, rng: np.random.Generator) -> dict[str, Any]:
    """A context whose numbers and categories are drawn at random."""
    return {
        name: float(rng.normal()) if isinstance(field, Number) else str(rng.choice(field.values))
        for name, field in zip(schema.names, schema.fields, strict=True)
    }


def possible_rewards(scale: Scale) -> list[float]:
    """Some rewards of a scale, two if there are two.

    >>> from submax import Binary, Continuous, Discrete
    >>> [possible_rewards(one) for one in (Binary(), Discrete((2.0, 3.0)), Continuous(low=5.0))]
    [[0.0, 1.0], [2.0, 3.0], [5.0, 6.0]]
    """
    low, high = (getattr(scale, word, None) for word in ("low", "high"))
    tried = [0.0, 1.0]
    if low is not None:
        tried = [low, low + 1.0]
    elif high is not None:
        tried = [high - 1.0, high]
    tried = list(getattr(scale, "values", scale.bounds or tried))
    return [one for one in tried if bool(scale.contains(np.array([one]))[0])]
