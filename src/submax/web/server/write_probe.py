"""Find out whether the store can write."""

import asyncio
import time
from collections.abc import Callable

from submax.core.errors import StoreError, one_line
from submax.live.store.store import Store

FRESH_SECONDS = 1.0
"""How long the result of a probe is used again, so that many questions cost one write."""
PROBE_SECONDS = 2.0
"""How long a probe may take before the store counts as unable to write."""


class WriteProbe:
    """Writes a small blob with the writer of the store, at most one at a time."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock = store, clock
        self._running: asyncio.Task[None] | None = None
        self._error: StoreError | None = None
        self._ended = -FRESH_SECONDS

    async def check(self) -> None:
        """Return if the store can write; raise a StoreError that says why it cannot."""
        if self._running is None and self._clock() - self._ended >= FRESH_SECONDS:
            self._running = asyncio.ensure_future(self._probe())
        if self._running is not None:
            try:
                await asyncio.wait_for(asyncio.shield(self._running), PROBE_SECONDS)
            except TimeoutError as error:
                raise StoreError(
                    f"the store has not written anything within {PROBE_SECONDS:g} seconds: see "
                    "that its disk or its server works; this is checked again at each request"
                ) from error
        if self._error is not None:
            raise StoreError(str(self._error), code=self._error.code)

    async def _probe(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, self._store.check_writable)
            self._error = None
        except StoreError as error:
            self._error = error
        except Exception as error:
            self._error = StoreError(f"the store cannot write: {one_line(error)}")
        finally:
            self._ended, self._running = self._clock(), None
