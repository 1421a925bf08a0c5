"""A client for bandits over HTTP, for programs with an event loop."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from submax.bandit.decision import Decision, LiftReport, Receipt
from submax.core.errors import StoreError
from submax.web.server.client.batching.batches import Exchange, decide_all, reward_all
from submax.web.server.client.batching.item import Item
from submax.web.server.client.loop_state import LoopState
from submax.web.server.client.messages.address import Address
from submax.web.server.client.messages.answers import RETRIED, failure, understood
from submax.web.server.client.messages.bodies import (
    RewardValue,
    decision_body,
    encoded,
    joined,
    reward_body,
)
from submax.web.server.client.messages.call import Call
from submax.web.server.client.messages.deadline_error import DeadlineError
from submax.web.server.client.messages.options import ClientOptions


class AsyncClient:
    """A client for one bandit of a server: ``Client``, with methods that are awaited.

    The options are those of ``Client``. There are at most ``connections`` connections. With
    ``batching``, decisions that tasks ask for in the same turn of the event loop are sent as one
    request, and so are those that are asked for while ``connections`` requests are under way.
    """

    def __init__(
        self,
        address: str,
        bandit: str,
        *,
        key: str | None = None,
        timeout: float = 10.0,
        attempts: int = 8,
        deadline: float | None = None,
        batching: bool = True,
        gather: float = 0.002,
        connections: int = 4,
    ) -> None:
        self._address = Address.of(address, bandit, key)
        self._options = ClientOptions(timeout, attempts, deadline, batching, gather, connections)
        self._state: LoopState | None = None

    async def decide(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the word that callers know
        eligible: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        activate: bool = True,
        unit: str | None = None,
    ) -> Decision:
        """As ``Bandit.decide``."""
        body = decision_body(context, id, eligible, activate, unit)
        found: Decision
        if self._options.batching:
            found = await self._in_time(self._here().decisions.put(body, self._options.until()))
        else:
            found = await self._send("POST", "/decide", body, Decision)
        return found

    async def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """As ``Bandit.decide_many``."""
        body = joined("requests", [decision_body(**request) for request in requests])
        found = await self._send("POST", "/decide-many", body, dict[str, list[Decision]])
        return list(found["decisions"])

    async def reward(
        self,
        id: str,  # noqa: A002 - the same word as in decide
        value: RewardValue,
        *,
        key: str | None = None,
        name: str | None = None,
        slot: str | None = None,
    ) -> Receipt:
        """As ``Bandit.reward``."""
        body = reward_body({"id": id, "value": value, "key": key, "name": name, "slot": slot})
        found: Receipt
        if self._options.batching:
            # A reward is sent, even if its caller gives up.
            waiting = self._here().rewards.put(body, self._options.until())
            found = await self._in_time(asyncio.shield(waiting))
        else:
            found = await self._send("POST", "/reward", body, Receipt)
        return found

    def queue_reward(
        self,
        id: str,  # noqa: A002 - the same word as in decide
        value: RewardValue,
        *,
        key: str | None = None,
        name: str | None = None,
        slot: str | None = None,
    ) -> "asyncio.Task[Receipt]":
        """Send a reward in the background, and return a task that ends with its receipt.

        ``flush`` and ``close`` wait for it; an event loop that ends before does not.
        """
        state = self._here()
        task = asyncio.get_running_loop().create_task(
            self.reward(id, value, key=key, name=name, slot=slot)
        )
        state.queued.add(task)

        def ended(task: "asyncio.Task[Receipt]") -> None:
            state.queued.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                state.errors.append(error)

        task.add_done_callback(ended)
        return task

    async def reward_many(self, rewards: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """As ``Bandit.reward_many``."""
        body = joined("rewards", [reward_body(reward) for reward in rewards])
        found = await self._send("POST", "/reward-many", body, dict[str, list[Receipt]])
        return list(found["receipts"])

    async def activate(self, id: str) -> Receipt:  # noqa: A002 - the same word as in decide
        """As ``Bandit.activate``."""
        found: Receipt = await self._send("POST", "/activate", encoded({"id": id}), Receipt)
        return found

    async def show(self) -> dict[str, Any]:
        """The bandit: its actions, settings, version and counts."""
        found: dict[str, Any] = await self._send("GET", "", None, dict[str, Any])
        return found

    async def lift(self) -> list[LiftReport]:
        """As ``Bandit.lift``."""
        found = await self._send("GET", "/lift", None, dict[str, list[LiftReport]])
        return list(found["lifts"])

    async def set(self, **changes: Any) -> dict[str, Any]:
        """Change settings as ``Bandit.set`` does, and return the bandit as ``show`` does."""
        body = encoded(changes)
        found: dict[str, Any] = await self._send("PATCH", "", body, dict[str, Any], slow=True)
        return found

    async def pause(self) -> dict[str, Any]:
        """Pause the bandit, as ``Bandit.pause`` does without a choice."""
        found: dict[str, Any] = await self._send("POST", "/pause", None, dict[str, Any])
        return found

    async def resume(self) -> dict[str, Any]:
        """Resume the bandit, as ``Bandit.resume`` does without a choice."""
        found: dict[str, Any] = await self._send("POST", "/resume", None, dict[str, Any])
        return found

    async def archive(self) -> dict[str, Any]:
        """Archive the bandit, as ``Bandit.archive`` does."""
        found: dict[str, Any] = await self._send("POST", "/archive", None, dict[str, Any])
        return found

    async def delete(self) -> None:
        """Delete the bandit with its log, as ``Bandit.delete`` does; this cannot be undone."""
        await self._send("DELETE", "", None, dict[str, Any])

    async def alarms(self) -> list[dict[str, Any]]:
        """The last 100 alarms, newest first: kind, at, active, sentence, subject and values."""
        found = await self._send("GET", "/alarms", None, dict[str, list[dict[str, Any]]])
        return list(found["alarms"])

    async def acknowledge_alarms(self) -> list[dict[str, Any]]:
        """Say that all alarms were seen, and return them as ``alarms`` does."""
        path = "/alarms/acknowledge"
        found = await self._send("POST", path, None, dict[str, list[dict[str, Any]]])
        return list(found["alarms"])

    async def flush(self) -> None:
        """Wait until all queued rewards are answered; an error says how many were not stored."""
        state = self._here()
        while state.queued:
            await asyncio.wait(state.queued)
        await state.rewards.flush()
        errors, state.errors = state.errors, []
        if errors:
            raise StoreError(
                f"{len(errors)} queued rewards were not stored, the first because: {errors[0]}"
            ) from errors[0]

    async def close(self) -> None:
        """Wait for queued rewards, and close the connections; a later call opens new ones."""
        try:
            await self.flush()
        finally:
            await self._here().pool.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _here(self) -> LoopState:
        """The state of the running event loop."""
        state = self._state
        if state is None or state.loop is not asyncio.get_running_loop():
            if state is not None:
                state.check_replaceable()
            state = LoopState(self._address, self._options, self._decide_all, self._reward_all)
            self._state = state
        return state

    async def _in_time(self, waiting: "asyncio.Future[Any]") -> Any:
        """Wait for an answer, and no longer than the deadline."""
        try:
            async with asyncio.timeout(self._options.longest_wait):
                return await waiting
        except TimeoutError as error:
            raise DeadlineError.while_waiting() from error

    async def _decide_all(self, items: list[Item]) -> None:
        # Nobody waits for a decision whose task was cancelled before it was sent.
        waiting = [item for item in items if not item.promise.done()]
        if waiting:
            await self._run(decide_all(waiting))

    async def _reward_all(self, items: list[Item]) -> None:
        await self._run(reward_all(items))

    async def _run(self, exchange: Exchange) -> None:
        """Make the calls of an exchange, one after the other."""
        outcome: Any = None
        while True:
            try:
                call = exchange.send(outcome)
            except StopIteration:
                return
            try:
                outcome = await self._called(call)
            except Exception as error:
                outcome = error

    async def _send(
        self, method: str, path: str, body: bytes | None, kind: Any, *, slow: bool = False
    ) -> Any:
        return await self._called(Call(method, path, body, kind, self._options.until(), slow))

    async def _called(self, call: Call) -> Any:
        attempts = self._options.attempts_for(self._address, call)
        pool = self._here().pool
        while True:
            try:
                status, answer = await pool.exchange(
                    call.method, call.path, call.body, attempts.begin()
                )
                if status not in RETRIED:
                    return understood(status, answer, call.kind)
                reason, _ = failure(answer)
            except (OSError, EOFError, asyncio.LimitOverrunError) as error:
                reason = f"{type(error).__name__}: {str(error) or 'timed out'}"
            await asyncio.sleep(attempts.pause_after(reason))
