"""Archives old events of a bandit while it is in use."""

import logging
import time
from collections.abc import Callable, Iterator

from submax.bandit.settings import Settings
from submax.core.errors import InputError, MissingExtraError
from submax.live.archive.compacting.compaction import SEGMENT_EVENTS, Compaction
from submax.live.log.ledger import Ledger
from submax.live.log.rows.training_rows import SEGMENT
from submax.live.store.store import Store

LOG = logging.getLogger("submax")
CHECKS = 100
"""How often it is checked in ``archive_after`` seconds whether a segment can be archived."""
MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 1.0, 3600.0
"""The shortest and the longest pause between two checks."""
KEPT_ROWS = 13 * SEGMENT
"""The newest training rows stay in the store if the policy trains a model, such as a network: it
reads the last 100,000 for every version. All others are read only if a version is fitted from
scratch, and are then computed from the log."""


class Compactor:
    """Archives full segments, a small part of the work at every step.

    It runs in the one process that leads. A segment is written as soon as it is full, so that a
    bandit with few events keeps all of them in the store.
    """

    def __init__(
        self, store: Store, name: str, clock: Callable[[], float], may_write: Callable[[], bool]
    ) -> None:
        self._store, self._name, self._clock = store, name, clock
        self._may_write = may_write
        self._work: Iterator[None] | None = None
        self._finished: Compaction | None = None
        self._next_check, self._pause = 0.0, MIN_PAUSE_SECONDS

    def prepare(self, settings: Settings, ledger: Ledger, trains_models: bool) -> None:
        """Begin with the next piece of work, if there is any; the ledger must have read the log.

        Nobody else may use the ledger meanwhile. ``trains_models`` is a fact of the policy.
        """
        if settings.archive_after is None:
            self._work = None
        elif self._finished is not None:
            # The ledger has read all that was written before the events were deleted. Nothing that
            # comes later can be about an event that is no longer in the store.
            ledger.collected.closed.forget_up_to(self._finished.archive.end)
            self._work = removed_rows(ledger, self._finished, trains_models)
            self._finished = None
        elif self._work is None and time.monotonic() >= self._next_check:
            pause = settings.archive_after / CHECKS
            self._pause = min(max(pause, MIN_PAUSE_SECONDS), MAX_PAUSE_SECONDS)
            self._work = self._compacted(settings, ledger, settings.archive_after)

    def work(self) -> None:
        """Do a small part of the work; other threads may use the ledger."""
        if self._work is None:
            return
        try:
            next(self._work)
        except StopIteration:
            self._work = None
            self._next_check = time.monotonic() + self._pause
        except (InputError, MissingExtraError) as error:
            # Events that cannot be archived stay where they are, and the bandit goes on.
            LOG.warning("%s: nothing was archived: %s", self._name, error)

    def _compacted(self, settings: Settings, ledger: Ledger, older_than: float) -> Iterator[None]:
        before = self._clock() - settings.archive_age(older_than)
        compaction = Compaction(
            self._store, self._name, settings, ledger, before, SEGMENT_EVENTS, self._may_write
        )
        yield from compaction.steps()
        if compaction.written:
            LOG.info("%s: archived up to position %d", self._name, compaction.archive.end)
            self._finished = compaction


def removed_rows(
    ledger: Ledger, compaction: Compaction, trains_models: bool = True
) -> Iterator[None]:
    """Remove stored training rows of archived decisions, and yield after each segment of them.

    ``trains_models`` says whether the policy trains a model, and so reads the newest rows often.
    """
    archived = sum(segment.decisions for segment in compaction.archive.segments)
    in_store = ledger.counts["decisions"] - archived
    rows = len(ledger.rows) - max(in_store, KEPT_ROWS if trains_models else 0)
    segments = ledger.rows.segments
    return segments.remove(max(0, rows) // SEGMENT)
