"""A policy whose probabilities are columns of a log that is read in parts."""

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.evaluation.logs.log import Log
from submax.evaluation.targets.given_probabilities import GivenProbabilities
from submax.evaluation.targets.probability_columns import COLUMNS, probability_columns
from submax.evaluation.targets.target_policy import TargetPolicy
from submax.schema.schema import Schema


class PartedColumns(TargetPolicy):
    """The policy ``columns=PATTERN``, whose probabilities are looked up in each part anew.

    ``given`` are the probabilities in the rows with the ``numbers``, in increasing order.
    """

    def __init__(
        self,
        pattern: str,
        given: GivenProbabilities | None = None,
        numbers: Integers | None = None,
    ) -> None:
        self.name = f"{COLUMNS}{pattern}"
        self._pattern, self._given, self._numbers = pattern, given, numbers

    @staticmethod
    def is_one(candidate: object) -> bool:
        """Return whether a candidate names columns of the log."""
        return isinstance(candidate, str) and candidate.startswith(COLUMNS)

    @classmethod
    def of(cls, candidate: str, sample: Log) -> "PartedColumns":
        """Return the policy after checking that the sample of a log has its columns."""
        pattern = candidate.removeprefix(COLUMNS)
        probability_columns(sample, pattern)
        return cls(pattern)

    def in_rows(self, log: Log, numbers: Integers) -> "PartedColumns":
        """Return the policy with its probabilities in some rows of the log."""
        return PartedColumns(self._pattern, probability_columns(log, self._pattern), numbers)

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        if self._given is None or self._numbers is None:
            raise InputError(
                f"the probabilities of {self.name} are known in the rows of a part; rows of a part "
                "are allowed: ask for them by in_rows"
            )
        place = np.searchsorted(self._numbers, numbers)
        return self._given.probabilities(schema, context, place)
