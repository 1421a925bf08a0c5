"""Decisions to be drawn, and those that are drawn already."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future

from submax.live.serving.decision import Decision
from submax.live.store.pending_write import PendingWrite

Draw = Callable[[], PendingWrite[Decision]]
"""Draws one decision."""


class DrawJob:
    """Draws several decisions, until it is done or abandoned.

    ``drawn`` grows while the job runs. ``abandoned`` is set by a caller that no longer waits: the
    decision under way cannot be interrupted, and no further one is begun. ``done`` is set at the
    end.
    """

    def __init__(self, draws: Sequence[Draw]) -> None:
        self.drawn: list[PendingWrite[Decision]] = []
        self.abandoned = False
        self.done: Future[None] = Future()
        # A running future cannot be cancelled by a caller that gives up: ``run`` will set it.
        self.done.set_running_or_notify_cancel()
        self._draws = draws

    def run(self) -> None:
        """Draw, and set ``done``, to an error if a draw fails."""
        try:
            for draw in self._draws:
                if self.abandoned:
                    break
                self.drawn.append(draw())
        except Exception as error:
            self.done.set_exception(error)
        else:
            self.done.set_result(None)
