"""Decisions whose rewards have not come back yet."""

from collections import deque

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
    log_prob = feedback.log_prob
    return Feedback(
        context=feedback.context[:, rows],
        action=feedback.action[:, rows],
        reward=feedback.reward[:, rows],
        log_prob=None if log_prob is None else log_prob[:, rows],
        weight=feedback.weight[:, rows],
    )


def joined(pieces: list[Feedback]) -> Feedback:
    """Return the decisions of all pieces, one after the other."""
    if len(pieces) == 1:
        return pieces[0]
    context, action, reward, log_prob, weight = zip(*pieces, strict=True)
    return Feedback(
        context=np.concatenate(context, axis=1),
        action=np.concatenate(action, axis=1),
        reward=np.concatenate(reward, axis=1),
        log_prob=None
        if any(piece is None for piece in log_prob)
        else np.concatenate(log_prob, axis=1),
        weight=np.concatenate(weight, axis=1),
    )
