"""The keys of many events, which become texts when they are asked for."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class KeyColumn(ABC):
    """Keys, and the keys of the decisions that events are about.

    Most readers of a log need few of the keys, and texts take time.
    """

    @abstractmethod
    def texts(self, places: Sequence[int]) -> list[str | None]:
        """Return the keys at some places."""

    @abstractmethod
    def about_texts(self, places: Sequence[int]) -> list[str | None]:
        """Return the keys of the decisions that the events at some places are about."""

    def uuids(self, places: Sequence[int]) -> NDArray[np.uint8] | None:
        """Return the bytes of ids that are UUIDs, ``[n, 16]``; None if some are anything else."""
        return None
