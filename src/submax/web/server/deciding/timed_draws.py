"""Draws the decisions of a bandit, and does not wait for a policy that takes too long."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from submax.bandit.active_version import ActiveVersion
from submax.bandit.decision import Decision
from submax.core.errors import InputError
from submax.live.bandits.bandit import LiveBandit
from submax.live.store.pending_write import PendingWrite
from submax.web.server.deciding.draw_job import DrawJob
from submax.web.server.deciding.draw_thread import DrawThread
from submax.web.server.interface.messages import Decide

ONE_SECONDS = 2.0
"""How long one decision may take before it is drawn uniformly: a person waits no longer."""
MANY_SECONDS = 8.0
"""How long several decisions in one request may take: less than the 10 seconds for which
``submax.Client`` waits."""
QUICK_SECONDS = 0.02
"""A version that decides in less computing time than this may decide in the event loop, which
answers nobody else meanwhile; passing a decision to a thread would take longer than most draws."""

Drawn = list[PendingWrite[Decision]]


class TimedDraws:
    """Draws decisions of one bandit within a deadline.

    The first decision of every version is drawn in a thread. If it was quick, ``is_quick`` is true
    and single decisions are drawn in the event loop from then on, as long as they stay quick. If
    the deadline passes, decisions that are not drawn are uniform within the guard rails, and are
    counted as failures of the bandit. A thread cannot be ended: while it is stuck, all decisions
    are uniform at once, so that a bandit occupies at most one thread.
    """

    def __init__(self, bandit: LiveBandit) -> None:
        self._bandit = bandit
        self._thread = DrawThread(bandit.name)
        self._quick: ActiveVersion | None = None

    @property
    def is_quick(self) -> bool:
        """Whether the version that decides now may decide in the event loop."""
        return self._quick is self._bandit.requests.serving

    def is_quick_for(self, request: Decide) -> bool:
        """Whether a decision may be drawn in the event loop."""
        return self.is_quick and not self._bandit.requests.reads_store(request.unit)

    def each(self, requests: Sequence[Decide]) -> list[PendingWrite[Decision] | InputError]:
        """Draw decisions of different callers here and now; invalid requests get an error."""
        serving, begin = self._bandit.requests.serving, time.thread_time()
        drawn = self._bandit.requests.deciding_each(map(_arguments, requests))
        self._note(serving, time.thread_time() - begin, len(requests))
        return drawn

    async def one(self, request: Decide) -> PendingWrite[Decision]:
        """Draw one decision in the thread."""
        (drawn,) = await self._in_thread([request], ONE_SECONDS)
        return drawn

    async def many(self, requests: Sequence[Decide]) -> Drawn:
        """Draw several decisions in the thread."""
        return await self._in_thread(requests, MANY_SECONDS)

    async def _in_thread(self, requests: Sequence[Decide], seconds: float) -> Drawn:
        job = DrawJob(self._timed, requests)
        if not self._thread.is_stuck:
            self._thread.start(job)
            await _wait(job, seconds)
        drawn = job.drawn[: len(requests)]
        return drawn + [self._uniform(request) for request in requests[len(drawn) :]]

    def _timed(self, requests: Sequence[Decide]) -> Drawn:
        serving, begin = self._bandit.requests.serving, time.thread_time()
        drawn = self._bandit.requests.deciding_many(map(_arguments, requests))
        self._note(serving, time.thread_time() - begin, len(requests))
        return drawn

    def _note(self, serving: ActiveVersion, seconds: float, count: int) -> None:
        self._quick = serving if seconds < QUICK_SECONDS * count else None

    def _uniform(self, request: Decide) -> PendingWrite[Decision]:
        return self._bandit.requests.deciding_uniformly(**_arguments(request))


def _arguments(request: Decide) -> dict[str, Any]:
    """The arguments of ``Requests.deciding`` for a request."""
    return {
        "context": request.context,
        "id": request.id,
        "eligible": request.eligible,
        "activate": request.activate,
        "unit": request.unit,
    }


async def _wait(job: DrawJob, seconds: float) -> None:
    """Wait for a job, and abandon it after some seconds, or if the caller gives up."""
    try:
        await asyncio.wait_for(asyncio.wrap_future(job.done), seconds)
    except TimeoutError:
        job.abandoned = True
    except asyncio.CancelledError:
        job.abandoned = True
        raise
