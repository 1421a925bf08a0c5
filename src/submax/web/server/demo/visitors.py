"""Lets simulated visitors come to a server."""

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import Callable

import numpy as np

from submax.client.client import AsyncClient
from submax.core.errors import StoreError
from submax.web.server.demo.world import ACTIONS, DemoWorld

REPORT_SECONDS = 5.0
"""How often a line says what happened since the last one."""
MOST_UNDER_WAY = 2000
"""Visits whose rewards are still awaited; if there are more, nobody new comes in."""


class Visitors:
    """Visitors of a world who come ``rate`` times a second, and what has become of them."""

    def __init__(
        self, world: DemoWorld, client: AsyncClient, rate: float, rng: np.random.Generator
    ) -> None:
        self._world, self._client, self._rate, self._rng = world, client, rate, rng
        self._under_way: set[asyncio.Task[None]] = set()
        self._shown: deque[str] = deque(maxlen=max(20, round(rate * REPORT_SECONDS)))
        self.counts: Counter[str] = Counter()

    async def come(self, seconds: float | None, report: Callable[[str], None]) -> None:
        """Let visitors come for some seconds, or for ever, and report now and then."""
        begin = reported = time.monotonic()
        while seconds is None or time.monotonic() - begin < seconds:
            now = time.monotonic()
            if len(self._under_way) < MOST_UNDER_WAY:
                task = asyncio.create_task(self._visit(now - begin))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)
            if now - reported >= REPORT_SECONDS:
                reported = now
                report(self.line(now - begin))
            await asyncio.sleep(float(self._rng.exponential(1 / self._rate)))
        # The last moment still belongs to the second half.
        report(self.line(math.nextafter(seconds, 0)))

    async def leave(self) -> None:
        """End the visits under way; rewards that are not known yet are not sent."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def line(self, seconds: float) -> str:
        """What was shown lately, and how much was sold since the begin."""
        shown = Counter(self._shown)
        shares = ", ".join(
            f"{name} {shown[name] / max(len(self._shown), 1):.0%}" for name in ACTIONS
        )
        taste = "second taste" if self._world.drifted(seconds) else "first taste"
        return (
            f"{seconds:5.0f} s, {taste}: {self.counts['visits']} visits, {self.counts['sold']} "
            f"sold; shown lately: {shares}"
        )

    async def _visit(self, seconds: float) -> None:
        try:
            decision = await self._client.decide()
            action = str(decision.action)
            self.counts["visits"] += 1
            self._shown.append(action)
            outcome = self._world.outcome(action, seconds, self._rng)
            await asyncio.sleep(outcome.delay)
            if outcome.reward is not None:
                await self._client.reward(decision.id, outcome.reward)
                self.counts["sold"] += 1
        except StoreError:
            # The server is being stopped, or is busy: this visitor is lost, and others come.
            self.counts["lost"] += 1
