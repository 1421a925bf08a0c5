"""A client for bandits over HTTP."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Self

from submax.bandit.decision import Decision, LiftReport, Receipt
from submax.web.server.client.batching.batches import Exchange, decide_all, reward_all
from submax.web.server.client.batching.queued_rewards import QueuedRewards
from submax.web.server.client.batching.shared_decisions import SharedDecisions
from submax.web.server.client.connecting.caller import Caller
from submax.web.server.client.messages.address import Address
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


class Client:
    """A client for one bandit of a server, which may be used from several threads.

    A request that fails on its way is sent again, up to ``attempts`` times of ``timeout`` seconds
    each, and for at most ``deadline`` seconds together. Every decision has an id before it is sent
    and every reward has a key, so that a request that arrives twice has the effect of one.

    With ``batching``, threads share requests. A decision is sent at once while fewer than
    ``connections`` decisions are under way; those that are asked for meanwhile are sent as one
    request. Rewards are gathered for ``gather`` seconds. Each caller gets its own answer or error.
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
        self._options = ClientOptions(timeout, attempts, deadline, batching, gather, connections)
        self._caller = Caller(Address.of(address, bandit, key), self._options)
        self._decisions = SharedDecisions(lambda items: self._run(decide_all(items)), connections)
        self._rewards = QueuedRewards(lambda items: self._run(reward_all(items)), gather)

    def decide(
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
        if self._options.batching:
            return self._decisions.decide(body, self._options.until())
        found: Decision = self._send("POST", "/decide", body, Decision)
        return found

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """As ``Bandit.decide_many``."""
        body = joined("requests", [decision_body(**request) for request in requests])
        found = self._send("POST", "/decide-many", body, dict[str, list[Decision]])
        return list(found["decisions"])

    def reward(
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
        if self._options.batching:
            waiting = self._rewards.put(body, self._options.until(), awaited=True)
            try:
                return waiting.result(self._options.longest_wait)
            except TimeoutError as error:
                raise DeadlineError.while_waiting() from error
        found: Receipt = self._send("POST", "/reward", body, Receipt)
        return found

    def queue_reward(
        self,
        id: str,  # noqa: A002 - the same word as in decide
        value: RewardValue,
        *,
        key: str | None = None,
        name: str | None = None,
        slot: str | None = None,
    ) -> "Future[Receipt]":
        """Send a reward in the background, and return a future of its receipt.

        A reward that was queued is sent before Python ends; ``flush`` and ``close`` wait for it.
        """
        body = reward_body({"id": id, "value": value, "key": key, "name": name, "slot": slot})
        return self._rewards.put(body, self._options.until(), awaited=False)

    def reward_many(self, rewards: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """As ``Bandit.reward_many``."""
        body = joined("rewards", [reward_body(reward) for reward in rewards])
        found = self._send("POST", "/reward-many", body, dict[str, list[Receipt]])
        return list(found["receipts"])

    def activate(self, id: str) -> Receipt:  # noqa: A002 - the same word as in decide
        """As ``Bandit.activate``."""
        found: Receipt = self._send("POST", "/activate", encoded({"id": id}), Receipt)
        return found

    def show(self) -> dict[str, Any]:
        """The bandit: its actions, settings, version and counts."""
        found: dict[str, Any] = self._send("GET", "", None, dict[str, Any])
        return found

    def lift(self) -> list[LiftReport]:
        """As ``Bandit.lift``."""
        found = self._send("GET", "/lift", None, dict[str, list[LiftReport]])
        return list(found["lifts"])

    def set(self, **changes: Any) -> dict[str, Any]:
        """Change settings as ``Bandit.set`` does, and return the bandit as ``show`` does."""
        body = encoded(changes)
        found: dict[str, Any] = self._send("PATCH", "", body, dict[str, Any], slow=True)
        return found

    def pause(self) -> dict[str, Any]:
        """Pause the bandit, as ``Bandit.pause`` does without a choice."""
        found: dict[str, Any] = self._send("POST", "/pause", None, dict[str, Any])
        return found

    def resume(self) -> dict[str, Any]:
        """Resume the bandit, as ``Bandit.resume`` does without a choice."""
        found: dict[str, Any] = self._send("POST", "/resume", None, dict[str, Any])
        return found

    def archive(self) -> dict[str, Any]:
        """Archive the bandit, as ``Bandit.archive`` does."""
        found: dict[str, Any] = self._send("POST", "/archive", None, dict[str, Any])
        return found

    def delete(self) -> None:
        """Delete the bandit with its log, as ``Bandit.delete`` does; this cannot be undone."""
        self._send("DELETE", "", None, dict[str, Any])

    def alarms(self) -> list[dict[str, Any]]:
        """The last 100 alarms, newest first: kind, at, active, sentence, subject and values."""
        found = self._send("GET", "/alarms", None, dict[str, list[dict[str, Any]]])
        return list(found["alarms"])

    def acknowledge_alarms(self) -> list[dict[str, Any]]:
        """Say that all alarms were seen, and return them as ``alarms`` does."""
        path = "/alarms/acknowledge"
        found = self._send("POST", path, None, dict[str, list[dict[str, Any]]])
        return list(found["alarms"])

    def flush(self) -> None:
        """Wait until all queued rewards are answered; an error says how many were not stored."""
        self._rewards.flush()

    def close(self) -> None:
        """Wait for queued rewards, and close the connections; a later call opens new ones."""
        try:
            self.flush()
        finally:
            self._caller.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, exchange: Exchange) -> None:
        """Make the calls of an exchange, one after the other."""
        outcome: Any = None
        while True:
            try:
                call = exchange.send(outcome)
            except StopIteration:
                return
            try:
                outcome = self._caller.call(call)
            except Exception as error:
                outcome = error

    def _send(
        self, method: str, path: str, body: bytes | None, kind: Any, *, slow: bool = False
    ) -> Any:
        return self._caller.call(Call(method, path, body, kind, self._options.until(), slow))
