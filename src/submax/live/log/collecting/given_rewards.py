"""Rewards that decisions have got so far."""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from submax.schema.rewards import RewardParts

Key = TypeVar("Key", int, str)
Combine = Callable[[float, float], float]
Parts = Mapping[str, float]
NO_PARTS: Parts = {}


class GivenRewards(Generic[Key]):
    """The reward so far of each decision, by its position or its id.

    If rewards have several parts, ``parts`` are those that came, and ``values`` what they are
    together. ``combine`` makes one of two rewards for the same decision, or for the same part.
    """

    def __init__(
        self,
        combine: Combine,
        rule: RewardParts | None,
        values: dict[Key, float] | None = None,
        parts: dict[Key, dict[str, float]] | None = None,
    ) -> None:
        self.values: dict[Key, float] = {} if values is None else values
        self.parts: dict[Key, dict[str, float]] = {} if parts is None else parts
        self._combine, self._rule = combine, rule

    def __contains__(self, key: Key) -> bool:
        return key in self.values

    def add(self, key: Key, value: float, parts: Parts | None) -> None:
        """Add a reward to those that a decision has already."""
        if self._rule is None or parts is None:
            before = self.values.get(key)
            self.values[key] = value if before is None else self._combine(before, value)
            return
        known = self.parts.setdefault(key, {})
        for name, number in parts.items():
            known[name] = self._combine(known[name], number) if name in known else number
        self.values[key] = self._rule.combined(known)

    def put(self, key: Key, value: float, parts: Parts) -> None:
        """Take over what came for a decision under another key."""
        self.values[key] = value
        if parts:
            self.parts[key] = dict(parts)

    def is_complete(self, key: Key) -> bool:
        """Whether a decision has its reward, or all parts of it."""
        if self._rule is None:
            return key in self.values
        return self._rule.is_complete(self.parts.get(key, NO_PARTS))

    def pop(self, key: Key) -> tuple[float | None, Parts]:
        """Return the reward of a decision and its parts, and forget them."""
        return self.values.pop(key, None), self.parts.pop(key, NO_PARTS)
