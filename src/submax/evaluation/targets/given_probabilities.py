"""A policy given by its probabilities in the rows of a log."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.evaluation.targets.checked_probabilities import checked_probabilities
from submax.evaluation.targets.target_policy import TargetPolicy
from submax.schema.schema import Schema


class GivenProbabilities(TargetPolicy):
    """A policy with known probabilities ``[N, M]`` of all actions in all N rows of a log."""

    def __init__(self, table: Any, name: str = "given probabilities") -> None:
        self._table, self.name = np.asarray(table), name

    def check_rows(self, rows: int) -> None:
        """Refuse an array that has not one row for each row of the log."""
        if len(self._table) != rows:
            raise InputError(
                f"{self.name} has {len(self._table)} rows, and the log has {rows}; a row for each "
                "row of the log is allowed: compute the probabilities for all rows, in their order",
                parameter="policies",
            )

    def of_rows(self, numbers: Integers) -> "GivenProbabilities":
        """Return the policy in some of the rows, given by their numbers."""
        return GivenProbabilities(self._table[numbers], self.name)

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        return checked_probabilities(self._table[numbers], len(numbers), schema, self.name)
