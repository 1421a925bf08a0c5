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
    """The policy ``columns=PATTERN``: its probability of an action is a column of the log.

    The log is read in parts, so the probabilities are known for one part at a time: ``given`` are
    those of the rows of a part, and ``numbers`` the numbers of these rows in the whole log, in
    increasing order. Both are None until ``in_rows`` is called.
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
    def is_named(candidate: object) -> bool:
        """Return whether a candidate is a text ``columns=PATTERN``."""
        return isinstance(candidate, str) and candidate.startswith(COLUMNS)

    @classmethod
    def of(cls, candidate: str, sample: Log) -> "PartedColumns":
        """Return the policy of a text ``columns=PATTERN``; check that the log has these columns.

        ``sample`` is a sample of the rows of the log.
        """
        pattern = candidate.removeprefix(COLUMNS)
        probability_columns(sample, pattern)
        return cls(pattern)

    def in_rows(self, log: Log, numbers: Integers) -> "PartedColumns":
        """Return the policy with its probabilities in one part of a log.

        ``numbers`` are the numbers of the rows of the part in the whole log.
        """
        return PartedColumns(self._pattern, probability_columns(log, self._pattern), numbers)

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        if self._given is None or self._numbers is None:
            raise InputError(
                f"{self.name} was asked for probabilities without rows of the log; it knows them "
                "for one part of the log at a time: call in_rows with the part first"
            )
        place = np.searchsorted(self._numbers, numbers)
        return self._given.probabilities(schema, context, place)
