"""Rows of a log as a policy learns from them."""

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.schema.columns import Columns
from submax.schema.context_schema import ContextSchema

ROWS, NUMBERS = 1 << 18, 1 << 24
"""So many rows, or numbers of wider rows, are encoded at a time: categories take a number each."""


class EncodedParts(Sequence[Columns]):
    """Parts of equal length, each made when it is asked for."""

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
        return max(1, min(ROWS, NUMBERS // max(self._schema.width, 1)))

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
