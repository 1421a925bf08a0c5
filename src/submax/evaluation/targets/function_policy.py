"""A policy given by a function."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.evaluation.targets.checked_probabilities import checked_probabilities
from submax.evaluation.targets.decoded_context import decoded_context
from submax.evaluation.targets.target_policy import TargetPolicy
from submax.schema.schema import Schema


class FunctionPolicy(TargetPolicy):
    """A function from columns of context to actions, or to probabilities of all actions.

    The function gets a table from the names of fields to arrays ``[n]`` (numbers, or names of
    categories) and returns the name of an action for each row, or probabilities ``[n, M]``.
    """

    def __init__(self, function: Callable[[dict[str, NDArray[Any]]], Any]) -> None:
        self._function = function
        self.name = getattr(function, "__name__", repr(function))

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        found = self._function(decoded_context(schema, context))
        return checked_probabilities(found, len(numbers), schema, f"the results of {self.name}")
