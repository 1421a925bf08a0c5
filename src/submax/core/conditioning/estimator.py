"""Contract of an estimator."""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

import numpy as np

from submax.core.arrays import Floats
from submax.core.conditioning.belief import Belief
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem

Params = TypeVar("Params")


class Estimator(ABC, Generic[Params]):
    """Learns p(action | context, reward level) by supervised learning.

    The hyper-parameters are the fields of the estimator; what it learns is in ``Params``, which
    its functions return anew and never change. Every question goes to the `Belief`.
    """

    @abstractmethod
    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Params:
        """Return the parameters before any feedback, for ``replicas`` independent runs."""

    @abstractmethod
    def fit(self, params: Params, feedback: Feedback, rng: np.random.Generator) -> Params:
        """Return the parameters after more feedback.

        ``feedback`` holds only the new rows. An estimator that needs the old rows again keeps them
        in ``params``.
        """

    @abstractmethod
    def belief(self, params: Params, context: Floats) -> Belief:
        """Return what is believed in these contexts, ``context [R, n, D]``."""

    @property
    def facts(self) -> Facts:
        """What callers have to know about the estimator, see `Facts`."""
        return Facts()
