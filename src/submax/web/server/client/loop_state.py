"""What a client has while one event loop runs."""

import asyncio
from collections.abc import Awaitable, Callable

from submax.core.errors import InputError
from submax.web.server.client.batching.item import Item
from submax.web.server.client.batching.task_batches import TaskBatches
from submax.web.server.client.connecting.stream_pool import StreamPool
from submax.web.server.client.messages.address import Address
from submax.web.server.client.messages.options import ClientOptions


class LoopState:
    """The connections and waiting requests of an ``AsyncClient`` in one event loop.

    ``decide`` and ``reward`` send a batch of requests. Decisions that are asked for in one turn of
    the loop are sent together at once; rewards are gathered for a moment.
    """

    def __init__(
        self,
        address: Address,
        options: ClientOptions,
        decide: Callable[[list[Item]], Awaitable[None]],
        reward: Callable[[list[Item]], Awaitable[None]],
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.pool = StreamPool(address, options.connections)
        self.decisions = TaskBatches(decide, options.connections, gather=0.0)
        self.rewards = TaskBatches(reward, options.connections, options.gather)
        self.queued: set[asyncio.Task[object]] = set()
        """Rewards whose receipts nobody awaits."""
        self.errors: list[BaseException] = []
        """The errors of those rewards, which ``flush`` reports."""

    def check_replaceable(self) -> None:
        """Refuse a second event loop while the first one is still there."""
        if not self.loop.is_closed():
            raise InputError(
                "the AsyncClient is used in another event loop than before, and connections belong "
                "to one loop: make a client for each loop"
            )
