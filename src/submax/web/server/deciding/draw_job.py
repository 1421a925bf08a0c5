"""Decisions to be drawn, and those that are drawn already."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future

from submax.bandit.decision import Decision
from submax.live.store.pending_write import PendingWrite
from submax.web.server.interface.messages import Decide

DrawAll = Callable[[Sequence[Decide]], list[PendingWrite[Decision]]]
"""Draws the decisions of several requests."""


class DrawJob:
    """Draws several decisions, until it is done or abandoned.

    ``drawn`` grows while the job runs. ``abandoned`` is set by a caller that no longer waits: a
    call of ``draw`` that is under way cannot be interrupted, and no further one is begun. ``done``
    is set at the end. Each call draws twice as many decisions as the one before it: a policy that
    takes long loses at most half of its work when the job is abandoned, and for one that is quick
    almost all decisions are drawn as large arrays.
    """

    def __init__(self, draw: DrawAll, requests: Sequence[Decide]) -> None:
        self.drawn: list[PendingWrite[Decision]] = []
        self.abandoned = False
        self.done: Future[None] = Future()
        # A running future cannot be cancelled by a caller that gives up: ``run`` will set it.
        self.done.set_running_or_notify_cancel()
        self._draw, self._requests = draw, requests

    def run(self) -> None:
        """Draw, and set ``done``, to an error if a draw fails."""
        first, size = 0, 1
        try:
            while first < len(self._requests) and not self.abandoned:
                self.drawn += self._draw(self._requests[first : first + size])
                first, size = first + size, 2 * size
        except Exception as error:
            self.done.set_exception(error)
        else:
            self.done.set_result(None)
