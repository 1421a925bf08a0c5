"""Contract of the decisions of a page by columns."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.schema.actions import ChoiceIndices
from submax.schema.context import ContextSchema

Eligible = tuple[NDArray[np.int64], list[ChoiceIndices]]
"""For each decision the number of its eligible choices in a list of all that occur."""


class DecisionColumns(ABC):
    """The fields of ``DecisionMade`` for ``n`` decisions, each computed when it is asked for."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of decisions."""

    @cached_property
    @abstractmethod
    def action(self) -> Floats:
        """The indices of the choices, then the real-valued parts, ``[n, S]``."""

    @cached_property
    @abstractmethod
    def propensity(self) -> Floats:
        """The probabilities of the actions, ``[n]``."""

    @cached_property
    @abstractmethod
    def version(self) -> NDArray[np.int64]:
        """The versions that decided, ``[n]``."""

    @cached_property
    @abstractmethod
    def activated(self) -> NDArray[np.bool_]:
        """Whether each decision was activated when it was made, ``[n]``."""

    @cached_property
    @abstractmethod
    def holdout(self) -> NDArray[np.bool_]:
        """Whether each decision belongs to the holdout, ``[n]``."""

    @cached_property
    @abstractmethod
    def paused(self) -> NDArray[np.bool_]:
        """Whether the bandit was paused at each decision, ``[n]``."""

    @cached_property
    @abstractmethod
    def unit(self) -> NDArray[np.object_]:
        """The unit of each decision, a text or None, ``[n]``."""

    @cached_property
    @abstractmethod
    def group(self) -> NDArray[np.void]:
        """The group of each decision, ``[n]`` records of ``GROUP_RECORD``."""

    @abstractmethod
    def encoded_contexts(self, schema: ContextSchema) -> NDArray[np.float32]:
        """The encoded contexts, ``[n, D]``; an ``InputError`` if one is damaged."""

    @abstractmethod
    def context_arrays(self, schema: ContextSchema) -> list[Any]:
        """One Arrow array for each field of the context."""

    @abstractmethod
    def eligible(self) -> Eligible:
        """The eligible choices of each decision."""

    @abstractmethod
    def probabilities(self) -> Any:
        """The lists of probabilities as an Arrow array of lists."""
