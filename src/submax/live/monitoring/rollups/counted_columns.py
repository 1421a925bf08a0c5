"""Columns of decisions and rewards that rollups count."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers

Singles = NDArray[np.float32]


class CountedDecisions(Protocol):
    """Columns of decisions: ``action`` begins with the index of the choice of each slot.

    ``position`` is the place of each decision in the log.
    """

    @property
    def position(self) -> Integers: ...
    @property
    def action(self) -> Floats: ...
    @property
    def propensity(self) -> Floats: ...
    @property
    def version(self) -> Integers: ...
    @property
    def holdout(self) -> Booleans: ...
    @property
    def context(self) -> Singles: ...


class MaturedOutcome(NamedTuple):
    """What became of decisions: see ``Rollups.matured``."""

    reward: Floats
    rewarded: Booleans
    weight: Floats
    propensity: Floats


class Counted(NamedTuple):
    """Decisions to be counted; ``outcome`` is None if they were made and have not matured."""

    at: Floats
    action: Floats
    version: Integers
    holdout: Booleans
    outcome: MaturedOutcome | None


class Made(NamedTuple):
    """Decisions that were made: see ``ContextSums.decided`` and ``ChoiceDelays.decided``."""

    context: Singles
    action: Floats
    position: Integers
    at: Floats


class LearnedDecisions(NamedTuple):
    """Decisions that were learned from: see ``ContextSums.learned``."""

    context: Singles
    action: Floats
    reward: Floats
    weight: Floats


class CameRewards(NamedTuple):
    """Rewards that came: the position of each decision, and position and time of the reward."""

    about: Integers
    position: Integers
    at: Floats
