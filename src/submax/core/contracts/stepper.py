"""Contract of a policy that decides and learns one decision at a time, in place."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.contracts.success_draws import SuccessDraws


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

    def take(self, draws: SuccessDraws, rng: np.random.Generator) -> tuple[Integers, Floats]:
        """Decide and learn as often as there are draws; return indices and rewards, ``[n, R]``.

        They are those of single steps. A stepper that can compute many steps together overrides
        this method.
        """
        index, reward = np.empty(draws.shape, dtype=np.int64), np.empty(draws.shape)
        # Iterating over arrays makes each row once, which costs less than to index them.
        for chosen, uniform, earned in zip(index, draws.uniform, reward, strict=True):
            chosen[:] = self.act(rng)
            draws.single(uniform, chosen, earned)
            self.learn(chosen, earned, rng)
        return index, reward
