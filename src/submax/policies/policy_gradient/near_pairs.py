"""Pairs of logged decisions with different rewards in near contexts."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.memory.buffer import Buffer

NUMBERS_AT_ONCE = 2**22
"""About how many numbers of candidates' contexts are held in memory at a time, 16 MB of float32."""


class NearPairs(NamedTuple):
    """The ``partner [R, rows]`` of every row of a buffer, and the ``sign`` of its preference.

    The sign is 1 if the row has the higher reward, −1 if its partner has it, and 0 if the row has
    no partner with another reward.
    """

    partner: Integers
    sign: Floats

    @classmethod
    def drawn(
        cls,
        buffer: Buffer,
        context: NDArray[np.float32],
        candidates: int,
        rng: np.random.Generator,
    ) -> Self:
        """Draw ``candidates`` random rows for each row, and take the nearest with another reward.

        ``context [R, rows, D]`` are the contexts on the scale on which distances are measured. The
        cost grows with the number of rows and not with its square.
        """
        replicas, rows = buffer.reward.shape
        partner = np.zeros((replicas, rows), dtype=np.int64)
        sign = np.zeros((replicas, rows))
        step = max(1, NUMBERS_AT_ONCE // (replicas * candidates * max(context.shape[2], 1)))
        for begin in range(0, rows, step):
            part = slice(begin, begin + step)
            drawn = rng.random((replicas, len(range(rows)[part]), candidates))
            index = (drawn * buffer.filled[:, None, None]).astype(np.int64)
            partner[:, part], sign[:, part] = _nearest(buffer, context, part, index)
        return cls(partner, np.where(buffer.weight > 0, sign, 0.0))

    def of(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values ``[R, rows, ...]`` of the partners."""
        return values[np.arange(len(self.partner))[:, None], self.partner]


def _nearest(
    buffer: Buffer, context: NDArray[np.float32], part: slice, index: Integers
) -> tuple[Integers, Floats]:
    """Return the nearest of the candidates ``index [R, m, P]`` and the sign of the preference."""
    replica = np.arange(len(index))[:, None, None]
    apart = context[replica, index] - context[:, part, None]
    higher = np.sign(buffer.reward[:, part, None] - buffer.reward[replica, index])
    distance = np.where(higher == 0, np.inf, np.einsum("rmpd,rmpd->rmp", apart, apart))
    best = distance.argmin(axis=-1)[..., None]
    chosen, sign = (np.take_along_axis(each, best, axis=-1)[..., 0] for each in (index, higher))
    return chosen, sign
