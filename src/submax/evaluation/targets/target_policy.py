"""The contract of policies that are evaluated without being policies of this library."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.evaluation.logs.log import Log
from submax.schema.learned import Learned
from submax.schema.schema import Schema


class TargetPolicy(ABC):
    """Gives the probability of every joint action in every row of a log.

    ``name`` is that in tables, unless the caller gives one.
    """

    name: str

    @property
    def learns(self) -> bool:
        """Whether the policy still has to learn from a part of the log."""
        return False

    @property
    def base(self) -> Learned | None:
        """The learned policy of which this one is a variant, if any."""
        return None

    def learned_from(self, log: Log, seed: int) -> "TargetPolicy":
        """Return the policy after it has learned from the rows of a log."""
        return self

    @abstractmethod
    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        """Return the probabilities of all joint actions, ``[n, M]``, the last slot fastest.

        ``context`` is encoded, as in ``Columns``; ``numbers`` are those of the rows in the log.
        """
