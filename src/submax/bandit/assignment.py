"""Assignment of requests and units to groups and actions, by numbers that follow from the unit."""

import hashlib
from functools import lru_cache
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.core.numerics import mixed
from submax.schema.actions import ChoiceIndices

Group = Literal["bandit", "holdout", "control"]


class ExperimentAssignment(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The group into which a decision was drawn, and the probabilities of the groups.

    ``since`` is the position of the settings by which groups were drawn: decisions with different
    values must not be compared. ``holdout_share`` is 0 if the baseline was not eligible.
    ``control_share`` is that of the decisions that are not held out; 0 without an alternative.
    """

    since: int
    group: Group
    holdout_share: float
    control_share: float


WORD = 2**64
"""The number of values of a hash of 8 bytes."""
FRACTION_BITS = 53
"""Bits of a random number that a float can hold."""
Codes = NDArray[np.uint64]


class UnitNumbers:
    """Random numbers of each unit, which are the same in all processes and after restarts.

    They follow by a hash from the name and the seed of a bandit, a purpose and the unit, and are
    independent of each other.
    """

    def __init__(self, name: str, seed: int) -> None:
        self._begin = f"{name} {seed} "

    def uniform(self, purpose: str, unit: str) -> float:
        """A number that is uniform between 0 and 1."""
        return self._hash(purpose, unit) / WORD

    def first_arrival(self, purpose: str, unit: str, codes: Codes, rates: Floats) -> int:
        """The index of the smallest Eᵢ / rateᵢ, where Eᵢ is the exponential number of a code.

        It is i with the probability rateᵢ / Σ rates. At least one rate must be above 0.
        """
        bits = mixed(codes + np.uint64(self._hash(purpose, unit)))
        exponentials = -np.log(((bits >> np.uint64(64 - FRACTION_BITS)) + 0.5) / 2**FRACTION_BITS)
        arrivals = np.full(len(codes), np.inf)
        return int(np.divide(exponentials, rates, out=arrivals, where=rates > 0).argmin())

    def generator(self, purpose: str, unit: str) -> np.random.Generator:
        return np.random.default_rng(self._hash(purpose, unit))

    def _hash(self, purpose: str, unit: str) -> int:
        # Neither part holds a space, so different arguments give different texts.
        text = f"{self._begin}{purpose} {unit}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


CACHED_SETS = 256
"""Sets of eligible choices whose codes are cached."""


@lru_cache(CACHED_SETS)
def action_codes(eligible: ChoiceIndices) -> Codes:
    """A code for each joint action, listed so that the choice of the last slot changes first.

    The code of a joint action depends on its choices only, so a unit compares the same numbers
    when other choices come or go.
    """
    codes = np.zeros(1, dtype=np.uint64)
    for indices in eligible:
        own = np.array(indices, dtype=np.uint64)
        # Mixed before the next slot is added, since sums of indices would coincide.
        codes = (mixed(codes)[:, None] + own).ravel()
    return mixed(codes)
