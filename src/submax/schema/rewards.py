"""Rewards as they are declared: one scale, or several parts by name or by slot."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import msgspec
import numpy as np

from submax.core.checks import finite, one_of
from submax.core.decoding import known_type
from submax.core.errors import InputError
from submax.core.rewards import Binary, Continuous, Counts, Discrete, Scale
from submax.schema.names import short_repr

SCALES: dict[str, type[Scale]] = {
    "binary": Binary,
    "continuous": Continuous,
    "counts": Counts,
    "discrete": Discrete,
}
SCALE_PARAMETERS = frozenset(
    field.name
    for scale in SCALES.values()
    for field in dataclasses.fields(scale)  # type: ignore[arg-type]  # all are dataclasses
)
"""The names of the parameters of all scales."""


def scale_of(rewards: Mapping[str, Any]) -> Scale:
    """Return the scale that a table describes."""
    kind = rewards["kind"]
    table = {key: value for key, value in rewards.items() if key != "kind"}
    try:
        return msgspec.convert(table, known_type(SCALES[kind]))
    except msgspec.ValidationError as error:
        raise InputError(f"rewards of the kind {kind!r}: {error}") from error


def rewards_of(rewards: object) -> dict[str, Any]:
    """Return the table that describes a scale, given a scale, its name, or a table to check."""
    if isinstance(rewards, str):
        rewards = {"kind": rewards}
    if isinstance(rewards, Mapping):
        kind = str(rewards.get("kind"))
        one_of("kind of rewards", kind, SCALES)
        wanted: Any = SCALES[kind]
        known = ["kind", *(field.name for field in dataclasses.fields(wanted))]
        for key in rewards:
            one_of(f"key of rewards {kind!r}:", str(key), known)
        rewards = scale_of(rewards)
    for kind, scale in SCALES.items():
        if type(rewards) is scale:
            given: Any = rewards
            return {"kind": kind, **dataclasses.asdict(given)}
    raise InputError(
        f"rewards must be a scale such as submax.Binary(), or its name, not {rewards!r:.60}"
    )


NAMED, SLOTS = "named", "slots"
WORDS = {NAMED: ("kind", "weights", "each"), SLOTS: ("kind", "each")}
"""The words of a declaration of rewards with parts, by its kind."""
MAX_PARTS = 50
"""The most names: each is a column of every export."""
MAX_LEVELS = 16
"""The most combined rewards that are levels of a discrete scale; every level is a row of tables
that policies compute for each decision."""
UNKNOWN_NAME = "unknown-reward-name"
"""The code of the error for a reward under a name that was not declared."""


class RewardParts(msgspec.Struct, frozen=True):
    """The parts of a reward, and how they become the one reward that is learned from.

    ``weights`` has a number for each part, ``each`` is the scale of every part. The reward is
    Σ weight × part, and a part that did not come counts as 0. ``kind`` is "named", or "slots" if
    the parts are those of slots.

    >>> parts = RewardParts("named", {"click": 1.0, "purchase": 20.0}, {"kind": "binary"})
    >>> parts.combined({"purchase": 1.0})
    20.0
    >>> parts.scale.bounds
    (0.0, 21.0)
    """

    kind: str
    weights: dict[str, float]
    each: dict[str, Any]

    @classmethod
    def of(cls, rewards: Mapping[str, Any], slots: Sequence[str]) -> Self | None:
        """The parts of rewards as ``declared_rewards`` returns them; None if they have no parts."""
        if rewards["kind"] not in WORDS:
            return None
        weights = rewards.get("weights") or dict.fromkeys(slots, 1.0)
        return cls(rewards["kind"], dict(weights), rewards["each"])

    @property
    def names(self) -> list[str]:
        return list(self.weights)

    @property
    def each_scale(self) -> Scale:
        return scale_of(self.each)

    @property
    def scale(self) -> Scale:
        """The scale of the combined reward, which follows from the weights.

        It is discrete if there are few possible rewards: then all of them are levels, and policies
        find the best action sooner than by quantiles of the rewards that came.
        """
        possible = sorted(self._possible())
        if possible == [0.0, 1.0]:
            return Binary()
        if len(possible) > 1:
            return Discrete(tuple(possible))
        low, high = 0.0, 0.0
        for weight in filter(None, self.weights.values()):
            ends = [weight * end for end in _ends(self.each_scale)]
            low, high = low + min(*ends, 0.0), high + max(*ends, 0.0)
        return Continuous(
            low=None if math.isinf(low) else low, high=None if math.isinf(high) else high
        )

    def combined(self, parts: Mapping[str, float]) -> float:
        """The reward of a decision for which these parts came."""
        # In the declared order, so the sum is one of the levels to the last bit.
        came = (weight * parts[name] for name, weight in self.weights.items() if name in parts)
        return float(sum(came))

    def given(self, value: Any, name: object) -> dict[str, Any]:
        """The parts that a caller gave: a value with a name, a table, or a list for all slots."""
        word = "slot" if self.kind == SLOTS else "name"
        is_list = self.kind == SLOTS and isinstance(value, (list, tuple, np.ndarray))
        table: dict[Any, Any] = {}
        if name is not None:
            table = {name: value}
        elif isinstance(value, Mapping):
            table = dict(value)
        elif is_list and len(value) == len(self.weights):
            table = dict(zip(self.weights, value, strict=True))
        if not table:
            raise InputError(
                f"the reward {short_repr(value)} was given without a {word}, but this "
                f"bandit has a reward for each of {', '.join(self.names)}: give "
                f"{word}={self.names[0]!r}, or a table",
                code="invalid-input" if is_list else UNKNOWN_NAME,
            )
        for one in table:
            if not isinstance(one, str) or one not in self.weights:
                raise InputError(
                    f"the reward has the {word} {short_repr(one)}, but this bandit declares "
                    f"{', '.join(self.names)}: give one of these",
                    code=UNKNOWN_NAME,
                )
        return table

    def _possible(self) -> set[float]:
        """All combined rewards, if they are known and not too many; else none."""
        scale = self.each_scale
        values = (0.0, 1.0) if isinstance(scale, Binary) else getattr(scale, "values", ())
        found = {0.0} if values else set()
        for weight in self.weights.values():
            found = {before + weight * value for before in found for value in (0.0, *values)}
            if len(found) > MAX_LEVELS:
                return set()
        return found


def declared_rewards(rewards: object) -> dict[str, Any]:
    """The table of rewards as the store has it: of a scale, or of rewards with parts.

    A table without a "kind" has names and weights: ``{"click": 1, "purchase": 20}``.
    """
    if isinstance(rewards, str):
        rewards = {"kind": rewards}
    if not isinstance(rewards, Mapping):
        return rewards_of(rewards)
    table: Mapping[str, Any] = rewards
    if "kind" not in rewards:
        if not rewards or any(word in SCALE_PARAMETERS for word in rewards):
            raise InputError(
                f"the table rewards has no 'kind': give one of {', '.join([*SCALES, *WORDS])}, or "
                "a table of names and weights such as {'click': 1, 'purchase': 20}"
            )
        table = {"kind": NAMED, "weights": rewards}
    kind = str(table["kind"])
    if kind not in WORDS:
        one_of("kind of rewards", kind, [*SCALES, *WORDS])
        return rewards_of(table)
    for word in table:
        one_of(f"key of rewards {kind!r}:", str(word), WORDS[kind])
    checked: dict[str, Any] = {"kind": kind, "each": rewards_of(table.get("each", "binary"))}
    return {**checked, "weights": _weights(table.get("weights"))} if kind == NAMED else checked


def _weights(given: object) -> dict[str, float]:
    if not isinstance(given, Mapping) or not 0 < len(given) <= MAX_PARTS:
        raise InputError(
            f"the weights of named rewards are {short_repr(given)}: give a table of 1 "
            f"to {MAX_PARTS} names, such as weights = {{'click': 1, 'purchase': 20}}"
        )
    for name, weight in given.items():
        if not isinstance(name, str) or not name.isidentifier() or len(name) > 64:
            raise InputError(
                f"a reward is named {short_repr(name)}: a name has up to 64 letters, digits "
                "and '_', and does not begin with a digit"
            )
        finite(f"the weight of the reward {name!r}", weight)
    if not any(given.values()):
        raise InputError(
            "all weights of named rewards are 0, so nothing could be learned: give at least "
            "one of them another weight"
        )
    return {name: float(weight) for name, weight in given.items()}


def _ends(scale: Scale) -> tuple[float, float]:
    if scale.bounds is not None:
        return scale.bounds
    low = 0.0 if isinstance(scale, Counts) else getattr(scale, "low", None)
    high = getattr(scale, "high", None)
    return -math.inf if low is None else low, math.inf if high is None else high
