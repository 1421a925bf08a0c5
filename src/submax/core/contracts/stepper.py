"""Contract of a policy that decides and learns one decision at a time, in place."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from submax.core.arrays import Floats, Integers


class Stepper(ABC):
    """What a policy has learned, changed in place by every single decision of a simulation.

    It is used instead of ``act`` and ``update`` if there is no context and every reward comes back
    before the next decision. It takes the same decisions from the same random numbers, which the
    conformance suite checks, but it computes no log-probabilities, checks nothing, and copies no
    arrays.

    ``exact`` says whether decisions are the same to the last bit. If not, the probabilities of
    decisions agree within the tolerance of a search, and few decisions differ.
    """

    exact: ClassVar[bool] = True

    @abstractmethod
    def act(self, rng: np.random.Generator) -> Integers:
        """Return the index of one joint action for each replica, ``[R]``."""

    @abstractmethod
    def learn(self, index: Integers, reward: Floats, rng: np.random.Generator) -> None:
        """Learn the rewards ``[R]`` of the actions ``index [R]`` that were just taken."""
