"""The keys of many events, which become texts when they are asked for."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.live.store.columns.byte_column import ByteColumn


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

    def with_uuids(self, letter: str, places: NDArray[np.int64]) -> "KeysWithIds | None":
        """Return the keys at some places by columns; None if some have another form.

        The form is the letter, a space and a UUID, perhaps followed by more text; an event whose
        letter is not that of a decision is about the decision with this UUID, and a decision is
        about nothing.
        """
        return None


class KeysWithIds(NamedTuple):
    """Keys with UUIDs: the bytes of these, ``[n, 16]``, and the text after each."""

    uuids: NDArray[np.uint8]
    rest: ByteColumn
