"""An estimator's belief in given contexts."""

from abc import ABC, abstractmethod

import numpy as np

from submax.core.arrays import Actions, Floats, Integers


class Conditioned(ABC):
    """π(a | c, l) for given contexts: what does not depend on the action is computed once."""

    @abstractmethod
    def prob(self, action: Actions) -> Floats:
        """Probabilities of actions ``[R, n, M, S] -> [R, n, L, M]``."""

    @abstractmethod
    def sample(self, level: int, count: int, rng: np.random.Generator) -> Actions:
        """Draw ``count`` actions at one level: ``[R, n, count, S]``."""

    @abstractmethod
    def rows(self, row: Integers) -> "Conditioned":
        """The same for some of the contexts, ``row [R, m]`` of each replica."""
