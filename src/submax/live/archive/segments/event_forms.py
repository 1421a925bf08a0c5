"""Parts of events that follow from other parts."""

import struct
from collections.abc import Sequence

import numpy as np

from submax.live.log.records import (
    ACTIVATION,
    DECISION,
    REWARD,
    activation_key,
    decision_key,
    reward_key,
)
from submax.schema.actions import ChoiceIndices

FLOAT, INTEGER = struct.Struct("<d"), struct.Struct("<q")
Keys = tuple[str | None, str | None]
"""The key of an event, and the key of the event that it is about."""


def bits_of(number: float) -> int:
    """The bits of a float as an integer; those of successive times differ little."""
    return int(INTEGER.unpack(FLOAT.pack(number))[0])


def float_of(bits: int) -> float:
    """The float with these bits.

    >>> float_of(bits_of(0.1))
    0.1
    """
    return float(FLOAT.unpack(INTEGER.pack(bits))[0])


def all_bits(numbers: Sequence[float]) -> list[int]:
    """The bits of many floats."""
    bits: list[int] = np.array(numbers, dtype=np.float64).view(np.int64).tolist()
    return bits


def all_floats(bits: Sequence[int]) -> list[float]:
    """The floats with these bits.

    >>> all_floats(all_bits([0.1, -0.0]))
    [0.1, -0.0]
    """
    numbers: list[float] = np.array(bits, dtype=np.int64).view(np.float64).tolist()
    return numbers


def parts_of(kind: str, key: str | None) -> tuple[str | None, str | None]:
    """The id and, for a reward, the name of the reward in the key of an event; None if absent."""
    parts = (key or "").split(" ")
    expected = 3 if kind == REWARD else 2
    if kind not in (DECISION, REWARD, ACTIVATION) or len(parts) != expected:
        return None, None
    return parts[1], parts[2] if kind == REWARD else None


def keys_of(kind: str, identifier: str | None, name: str | None) -> Keys:
    """The keys that an event of this kind has, if its id and the name of its reward are these.

    >>> keys_of("reward", "visit-1", "bought")
    ('r visit-1 bought', 'd visit-1')
    """
    if identifier is None:
        return None, None
    if kind == DECISION:
        return decision_key(identifier), None
    if kind == REWARD:
        return reward_key(identifier, name or ""), decision_key(identifier)
    return activation_key(identifier), decision_key(identifier)


def listed_probability(
    action: Sequence[float], eligible: ChoiceIndices, probabilities: Sequence[float] | None
) -> float | None:
    """The probability of an action in the list of a decision; None if the list does not have it.

    >>> listed_probability([1, 0], ((0, 1), (0, 2)), [0.1, 0.2, 0.3, 0.4])
    0.3
    """
    if probabilities is None or len(action) != len(eligible):
        return None
    index = 0
    try:
        for choice, indices in zip(action, eligible, strict=True):
            index = index * len(indices) + indices.index(choice)
        return probabilities[index]
    except (ValueError, IndexError):
        return None
