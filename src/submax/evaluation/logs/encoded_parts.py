"""The rows of a log in the encoding from which policies learn, part by part."""

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.schema.columns import Columns
from submax.schema.context_schema import ContextSchema

MOST_ROWS, MOST_NUMBERS = 1 << 18, 1 << 24
"""A part has at most this many rows and, since every value of a category takes one number in the
encoding, at most this many numbers: 64 MB as float32."""


class EncodedParts(Sequence[Columns]):
    """A sequence of parts of equal length (the last may be shorter), each encoded on access.

    ``context [N, F]`` has one number for each field; in the parts it is one-hot for categories.
    """

    def __init__(
        self,
        schema: ContextSchema,
        context: NDArray[np.float32],
        action: NDArray[Any],
        reward: Floats,
        log_prob: Floats,
    ) -> None:
        self._schema, self._context, self._action = schema, context, action
        self._reward, self._log_prob = reward, log_prob

    def __len__(self) -> int:
        return -(-len(self._reward) // self._step)

    @property
    def _step(self) -> int:
        return max(1, min(MOST_ROWS, MOST_NUMBERS // max(self._schema.width, 1)))

    @overload
    def __getitem__(self, place: int) -> Columns: ...
    @overload
    def __getitem__(self, place: slice) -> list[Columns]: ...
    def __getitem__(self, place: int | slice) -> Columns | list[Columns]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        place = place + len(self) if place < 0 else place
        if not 0 <= place < len(self):
            raise IndexError(place)
        rows = slice(place * self._step, (place + 1) * self._step)
        return Columns(
            self._schema.encode_rows(self._context[rows]),
            self._action[rows].astype(np.float64),
            self._reward[rows],
            self._log_prob[rows],
        )
