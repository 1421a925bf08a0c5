"""Distributions of the action given the context and the reward level, in given contexts."""

from abc import ABC, abstractmethod

import numpy as np

from submax.core.arrays import Actions, Floats, Integers


class ConditionalDistribution(ABC):
    """p(action | context, reward level) for n given contexts of each of R replicas.

    Work that does not depend on the action, such as evaluating a network in these contexts, is
    done at most once.
    """

    @abstractmethod
    def prob(self, action: Actions) -> Floats:
        """Return the probability (or density) of M actions at every one of the L levels.

        ``action [R or 1, n or 1, M, S]`` gives ``[R, n, L, M]``.
        """

    @abstractmethod
    def sample(self, level: int, count: int, rng: np.random.Generator) -> Actions:
        """Draw ``count`` actions in every context at one level: ``[R, n, count, S]``."""

    @abstractmethod
    def rows(self, row: Integers) -> "ConditionalDistribution":
        """Return the distribution in some of the contexts: ``row [R, m]`` are their indices."""
