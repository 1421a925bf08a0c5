"""Decisions whose rewards have not come back yet."""

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from submax.core.contracts.feedback import Feedback


class Pending:
    """A queue of feedback, oldest first; blocks are split along the axis of decisions."""

    def __init__(self) -> None:
        self._queue: deque[Feedback] = deque()

    def put(self, feedback: Feedback) -> None:
        """Add the newest decisions, arrays ``[R, n, ...]``."""
        self._queue.append(feedback)

    def take(self, count: int) -> Feedback:
        """Remove and return the oldest ``count`` decisions of every replica."""
        pieces = []
        while count > 0:
            piece = self._queue.popleft()
            rows = piece.reward.shape[1]
            if rows > count:
                self._queue.appendleft(_rows_of(piece, slice(count, None)))
                piece = _rows_of(piece, slice(None, count))
            pieces.append(piece)
            count -= rows
        return joined(pieces)


def _rows_of(feedback: Feedback, rows: slice) -> Feedback:
    parts: Any = (None if part is None else part[:, rows] for part in feedback)
    return type(feedback)(*parts)


def joined(pieces: list[Feedback]) -> Feedback:
    """Return the decisions of all pieces, one after the other.

    What one of the pieces does not have, such as log-probabilities, the result does not have.
    """
    if len(pieces) == 1:
        return pieces[0]
    return type(pieces[0])(*map(_joined_part, zip(*pieces, strict=True)))


def _joined_part(parts: Sequence[Any]) -> Any:
    if any(part is None for part in parts):
        return None
    return np.concatenate(parts, axis=1)
