"""Rewards that callers give, checked against the declaration, and how several become one."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from submax.bandit.decision import Decision
from submax.bandit.names import check_identifier
from submax.bandit.settings import Settings
from submax.core.errors import ConflictError, InputError
from submax.core.rewards import Scale
from submax.schema.context import LARGEST, as_number
from submax.schema.names import short_repr
from submax.schema.rewards import SLOTS, UNKNOWN_NAME, RewardParts

DEFAULT_REWARD_KEY = "reward"
"""The key of a reward if the caller gives none, since most decisions have one reward."""

MAX_NUMBERS_CACHED = 100
"""Different rewards that are remembered as allowed."""


class CheckedReward(NamedTuple):
    """A reward as it is written: its key, its value, and its parts, if rewards have parts."""

    key: str
    value: float
    parts: dict[str, float] | None


class RewardValues:
    """The rewards that a bandit with these settings takes."""

    def __init__(self, settings: Settings) -> None:
        self._kind = settings.rewards["kind"]
        self._parts: RewardParts | None = settings.reward_parts
        self._scale: Scale = settings.scale if self._parts is None else self._parts.each_scale
        # Most rewards are one of few numbers, and numpy takes long to check a single one.
        self._check = lru_cache(MAX_NUMBERS_CACHED)(
            lambda number: self._scale.check(np.array([number]))
        )

    def checked_call(
        self,
        id: object,  # noqa: A002 - the same word as in decide
        value: object,
        *,
        key: str | None = None,
        name: str | None = None,
        slot: str | None = None,
    ) -> tuple[str, CheckedReward]:
        """The id and the reward of a call of ``Bandit.reward``, which has these arguments."""
        if isinstance(id, Decision):
            raise InputError("pass the id of the decision, decision.id, not the Decision itself")
        check_identifier("the id of a decision", id)
        if key is not None:
            check_identifier("the key of a reward", key)
        return str(id), self.checked(value, key, name, slot)

    def checked(self, value: object, key: str | None, name: object, slot: object) -> CheckedReward:
        """Refuse a reward that the declaration does not allow.

        Without a key, the key of a reward with a name is its name.
        """
        part = self._part(name=name, slot=slot)
        if self._parts is None:
            return CheckedReward(key or DEFAULT_REWARD_KEY, self._number(value), None)
        given = self._parts.given(value, part)
        parts = {one: self._number(number) for one, number in given.items()}
        default = str(next(iter(parts))) if len(parts) == 1 else DEFAULT_REWARD_KEY
        if key is None and not (default.isascii() and default.isprintable() and " " not in default):
            # Names of slots may have characters that keys may not have.
            default = f"slot-{self._parts.names.index(default)}"
        return CheckedReward(key or default, self._parts.combined(parts), parts)

    def _part(self, **words: object) -> object:
        """The name or the slot of a part; the word that the bandit does not have is refused."""
        has, instead = "", "one reward: leave it out"
        if self._parts is not None:
            has = "slot" if self._parts.kind == SLOTS else "name"
            instead = f"a reward for each {has}: give {has}={self._parts.names[0]!r}"
        for word, given in words.items():
            if given is not None and word != has:
                raise InputError(
                    f"the reward has the {word} {short_repr(given)}, but this bandit has {instead}",
                    code=UNKNOWN_NAME,
                )
        return words.get(has)

    def _number(self, value: object) -> float:
        number = as_number(value)
        if number is None:
            raise InputError(
                f"a reward must be a number below {LARGEST:g}, not {short_repr(value)}"
            )
        try:
            self._check(number)
        except InputError as error:
            declared = self._kind if self._parts is None else self._parts.each["kind"]
            raise InputError(
                f"rewards of this bandit are {declared}, so {number:.12g} is not allowed: use "
                "rewards='continuous' for amounts"
            ) from error
        return number


def conflicting_reward(identifier: str, key: str, before: object, now: object) -> ConflictError:
    """The error for another reward of a decision under the same key."""
    return ConflictError(
        f"decision {identifier!r} already has the reward {before} under the key {key!r}, so "
        f"{now} was not stored: give another key to add to it"
    )


COMBINE: dict[str, Callable[[float, float], float]] = {
    "last": lambda before, value: value,
    "first": lambda before, value: before,
    "max": max,
    "sum": lambda before, value: before + value,
}
"""How two rewards of a decision, or of one of its parts, become one."""


def combined_reward(
    rewards: Iterable[tuple[float, Mapping[str, float] | None]],
    combine: str,
    rule: RewardParts | None,
) -> tuple[float | None, dict[str, float]]:
    """The reward of a decision, and its parts, from all values and parts that came, in order.

    None without rewards.
    """
    join = COMBINE[combine]
    reward: float | None = None
    parts: dict[str, float] = {}
    for value, given in rewards:
        if rule is None or given is None:
            reward = value if reward is None else join(reward, value)
            continue
        for name, number in given.items():
            parts[name] = join(parts[name], number) if name in parts else number
        reward = rule.combined(parts)
    return reward, parts
