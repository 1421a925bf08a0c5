"""Clients for bandits over HTTP: one for threads and one for event loops, with the same methods."""

import asyncio
import functools
import math
import os
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Concatenate, Generic, NamedTuple, ParamSpec, Self, TypeVar
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from submax.bandit.decision import Decision, LiftReport, Receipt
from submax.bandit.names import check_bandit, new_identifier
from submax.core.checks import positive, whole_number
from submax.core.decoding import known_type
from submax.core.errors import ConflictError, ForbiddenError, InputError, NotFoundError, StoreError
from submax.core.summary import counted

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds before the second attempt, and at most between two; the pause doubles each time."""
IDLE_SECONDS = 30.0
"""An idle connection is not used again after this: the server closes it after 75 seconds."""
SLOW_SECONDS = 90.0
"""Timeout of declarations, changes of settings and exports, which may take long."""
RETRIED = (429, 503)
"""Statuses after which the same request is sent again: too many requests, or unavailable."""
REFUSALS: dict[int, type[InputError]] = {
    401: ForbiddenError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
}
"""The error that each status stands for; any other status below 500 is an ``InputError``."""
RewardValue = float | Mapping[str, float] | Sequence[float]
"""A reward, a table of rewards by name or slot, or a list with one reward for each slot."""
Table = dict[str, Any]
Outcome = httpx.Response | httpx.TransportError
"""The response to an attempt, or why it failed on its way."""
Answer = TypeVar("Answer")
Parameters = ParamSpec("Parameters")


class DeadlineError(StoreError):
    """The deadline of a call has passed; repeat the call with the same id."""

    default_code = "deadline"


class Call(NamedTuple, Generic[Answer]):
    """One request to a server.

    ``path`` starts at the root of the server. The answer, or the ``field`` of it if one is named,
    is decoded as ``kind``. ``timeout`` and ``attempts`` replace those of the client.
    """

    method: str
    path: str
    kind: type[Answer]
    body: bytes | None = None
    field: str | None = None
    timeout: float | None = None
    attempts: int | None = None


def server_url(address: str) -> str:
    """The URL of a server without a trailing slash, user or password; refuse what is none."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("http", "https") or port == 0:
        raise InputError(
            f"{address!r} is not the URL of a server: write it like http://127.0.0.1:8000",
            parameter="address",
        )
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"


def bandit_path(bandit: str) -> str:
    """Return the path of a bandit on its server."""
    check_bandit(bandit)
    return f"/bandits/{quote(bandit)}"


def encoded(body: object) -> bytes:
    """Encode a body as JSON, or raise an ``InputError`` for what JSON cannot express."""
    try:
        _check_finite(body)
        return msgspec.json.encode(body, enc_hook=_plain)
    except (TypeError, UnicodeError) as error:
        raise InputError(
            f"the request cannot be written as JSON ({error}): use strings, numbers, lists and "
            "dictionaries"
        ) from error


def _check_finite(value: object) -> None:
    """Refuse NaN and infinity: JSON cannot express them, and null would mean "missing"."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"a number must be finite, not {value}")
    if isinstance(value, (list, tuple, Mapping)):
        for one in value.values() if isinstance(value, Mapping) else value:
            _check_finite(one)


def _plain(value: Any) -> object:
    """Convert a number of NumPy, which msgspec does not know."""
    if not (hasattr(value, "item") and getattr(value, "ndim", 1) == 0):
        raise TypeError(f"{value!r:.60} is not a string, number, list or dictionary")
    _check_finite(value.item())
    return value.item()


def declared(options: Mapping[str, Any]) -> Table:
    """Options of ``submax.open`` in the words of JSON, in which fields are encoded as they are."""
    sent, rewards = dict(options), options.get("rewards")
    if isinstance(context := sent.get("context"), Mapping):
        types = {id(kind): "number" for kind in (float, int, bool)}
        sent["context"] = {name: types.get(id(one), one) for name, one in context.items()}
    if is_dataclass(rewards.get("each") if isinstance(rewards, Mapping) else rewards):
        # A client that only decides needs no NumPy.
        from submax.schema.rewards import declared_rewards

        sent["rewards"] = declared_rewards(rewards)
    return sent


def understood(status: int, content: bytes, call: Call[Answer]) -> Answer:
    """Return the answer to a call, or raise the error that it reports."""
    if not 200 <= status < 300:
        sentence, code = _failure(content)
        raise REFUSALS.get(status, StoreError if status >= 500 else InputError)(sentence, code=code)
    try:
        if call.field is not None:
            parts: Any = msgspec.json.decode(content, type=known_type(dict[str, msgspec.Raw]))
            content = parts[call.field]
        return msgspec.json.decode(content, type=known_type(call.kind))
    except (msgspec.DecodeError, KeyError) as error:
        raise StoreError(
            f"this answer is not from a submax server ({error}): check the URL"
        ) from error


def _failure(content: bytes) -> tuple[str, str | None]:
    try:
        report = msgspec.json.decode(content, type=dict[str, str])
        return report["error"], report.get("code")
    except (msgspec.DecodeError, KeyError):
        text = content[:100].decode(errors="replace")
        return f"the address does not answer as a submax server ({text!r}): check the URL", None


class Attempt(NamedTuple):
    """A request, as arguments for httpx, to be sent after a pause of so many seconds."""

    request: Table
    pause: float


class Core:
    """What both clients share: the bandit, and how calls are made, with retries and deadlines."""

    def __init__(
        self,
        address: str | Sequence[str],
        bandit: str | None = None,
        *,
        key: str | None = None,
        timeout: float = 10.0,
        attempts: int = 8,
        deadline: float | None = None,
    ) -> None:
        self._bandit = bandit
        self._path = "" if bandit is None else bandit_path(bandit)
        addresses = [address] if isinstance(address, str) else address
        self._servers, self._current = [server_url(one) for one in addresses], 0
        if not self._servers:
            raise InputError("give the URL of at least one server", parameter="address")
        if key is not None and not (key.isascii() and key.isprintable()):
            raise InputError(
                "this is not a key: give the whole text submax.….… that submax keys add printed",
                parameter="key",
            )
        sent = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._options: Any = {
            "headers": {"Content-Type": "application/json", **sent},
            "limits": httpx.Limits(keepalive_expiry=IDLE_SECONDS),
        }
        positive("timeout", timeout)
        whole_number("attempts", attempts, at_least=1)
        if deadline is not None:
            positive("deadline", deadline)
        self._timeout, self._attempts, self._deadline = timeout, attempts, deadline

    def _exchange(self, call: Call[Answer]) -> Generator[Attempt, Outcome, Answer]:
        """Make a call; return the answer or raise the error that it reports.

        A generator without input and output, so threads and event loops share it: it yields an
        ``Attempt``, and is sent its outcome. After a failure the next server is tried, and stays
        the first choice if it answers.
        """
        until = float("inf") if self._deadline is None else time.monotonic() + self._deadline
        timeout, reason = call.timeout or self._timeout, "nothing was sent yet"
        pause, longer = 0.0, FIRST_PAUSE
        for made in range(call.attempts or self._attempts):
            position = self._current
            server = self._servers[position]
            left = until - pause - time.monotonic()
            if left <= 0:
                raise DeadlineError(
                    f"no answer from {server} before the deadline, after "
                    f"{counted(made, 'attempt')} ({reason}): check that the server runs, or give "
                    "a longer deadline"
                )
            request = {"method": call.method, "url": server + call.path, "content": call.body}
            outcome = yield Attempt({**request, "timeout": min(timeout, left)}, pause)
            if isinstance(outcome, httpx.TransportError):
                reason = f"{type(outcome).__name__}: {str(outcome) or 'timed out'}"
            elif outcome.status_code not in RETRIED:
                return understood(outcome.status_code, outcome.content, call)
            else:
                reason, _ = _failure(outcome.content)
            self._current = (position + 1) % len(self._servers)
            # A random factor, so clients that failed together do not retry together.
            pause, longer = longer * (0.5 + random.random()), min(2 * longer, LONGEST_PAUSE)
        raise StoreError(
            f"no answer from {server} after {counted(made + 1, 'attempt')} ({reason}): check "
            "that the server runs and that the URL is right"
        )


class Operations(ABC):
    """The operations of a server and of one of its bandits, each written once for both clients.

    They return what ``send`` returns: the answer in a ``Client``, an awaitable of it in an
    ``AsyncClient``.
    """

    _bandit: str | None
    _path: str

    @property
    def bandit(self) -> str | None:
        return self._bandit

    @abstractmethod
    def send(self, call: Call[Answer]) -> Answer:
        """Make any call; the methods cover the usual ones."""

    def decide(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the word that callers know
        eligible: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        activate: bool = True,
        unit: str | None = None,
    ) -> Decision:
        """Choose an action. Without an ``id``, one is generated, so retries decide only once."""
        body = {"context": context, "id": id, "eligible": eligible, "activate": activate}
        return self._post("/decide", _with_id({**body, "unit": unit}), Decision)

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """Make several decisions in one request; each has the arguments of ``decide``."""
        body = {"requests": list(map(_with_id, requests))}
        return self._post("/decide-many", body, list[Decision], "decisions")

    def reward(
        self,
        id: str,  # noqa: A002 - the same word as in decide
        value: RewardValue,
        *,
        key: str | None = None,
        name: str | None = None,
        slot: str | None = None,
    ) -> Receipt:
        """Record a reward of a decision."""
        body = {"id": id, "value": value, "key": key, "name": name, "slot": slot}
        return self._post("/reward", body, Receipt)

    def reward_many(self, rewards: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """Record several rewards in one request; a conflict is in the receipt of its reward."""
        return self._post("/reward-many", {"rewards": list(rewards)}, list[Receipt], "receipts")

    def activate(self, id: str) -> Receipt:  # noqa: A002 - the same word as in decide
        """Confirm a decision that was made with ``activate=False``."""
        return self._post("/activate", {"id": id}, Receipt)

    def create(self, /, actions: Any, **options: Any) -> Table:
        """Declare the bandit on the server, with the options of ``submax.open``."""
        body = encoded({"name": self._bandit, "actions": actions, **declared(options)})
        return self.send(Call("POST", "/bandits", Table, body, timeout=SLOW_SECONDS))

    def show(self) -> Table:
        """Return the bandit: its actions, settings, version, counts and notices."""
        return self.send(Call("GET", self._path, Table))

    def lift(self) -> list[LiftReport]:
        """Return the lift over the holdout and over the control."""
        return self.send(Call("GET", f"{self._path}/lift", list[LiftReport], field="lifts"))

    def set(self, /, **changes: Any) -> Table:
        """Change settings, all or none, and return the bandit as ``show`` does."""
        body = encoded(declared(changes))
        return self.send(Call("PATCH", self._path, Table, body, timeout=SLOW_SECONDS))

    def add(self, /, choice: str, **options: Any) -> Table:
        """Add an arm, or a choice to a ``slot``, with its ``features`` and ``ramp``."""
        return self._change("add", choice, options)

    def pause(self, choice: str | None = None, *, slot: str = "") -> Table:
        """Pause a choice; without one, the whole bandit."""
        return self._change("pause", choice, {"slot": slot})

    def resume(self, choice: str | None = None, *, slot: str = "") -> Table:
        """Resume a choice; without one, the whole bandit."""
        return self._change("resume", choice, {"slot": slot})

    def retire(self, choice: str, *, slot: str = "") -> Table:
        """Make a choice ineligible forever."""
        return self._change("retire", choice, {"slot": slot})

    def archive(self) -> Table:
        """Refuse decisions and rewards until ``resume``."""
        return self._post("/archive")

    def delete(self) -> Table:
        """Delete the bandit with its decisions; this cannot be undone."""
        return self.send(Call("DELETE", self._path, Table))

    def versions(self) -> Table:
        """Return the versions, the one that decides, and whether it is held."""
        return self.send(Call("GET", f"{self._path}/versions", Table))

    def publish(self, version: int | None = None) -> Table:
        """Make a version live and hold it; without one, follow the newest version."""
        return self._post("/publish", {} if version is None else {"version": version})

    def roll_back(self) -> Table:
        """Go back to the version before the current one, and hold it."""
        return self._post("/roll-back")

    def erase(self, unit: str, *, anonymous: bool = False) -> int:
        """Delete the decisions and rewards of a unit, or make them anonymous; return how many."""
        return self._post("/erase", {"unit": unit, "anonymous": anonymous}, int, "decisions")

    def audit(self) -> list[Table]:
        """Return the last 1,000 changes of the whole server, newest first."""
        return self.send(Call("GET", "/audit", list[Table], field="changes"))

    def bandits(self) -> list[str]:
        """Return the names of the bandits that the key may see."""
        return self.send(Call("GET", "/bandits", list[str], field="bandits"))

    def keys(self) -> list[Table]:
        """Return all keys, without their secrets."""
        return self.send(Call("GET", "/keys", list[Table], field="keys"))

    def add_key(self, /, scopes: Sequence[str], **options: Any) -> Table:
        """Create a key; return its ``id`` and the ``key`` itself, which is not shown again.

        ``options`` are ``bandits``, ``rate``, ``name``, ``expires`` and ``origins``.
        """
        body = encoded({"scopes": list(scopes), **options})
        # Repeated after an answer that was lost, the request would make a second key.
        return self.send(Call("POST", "/keys", Table, body, attempts=1))

    def revoke_key(self, id: str) -> Any:  # noqa: A002 - as in decide
        """Revoke a key: the server refuses it from now on."""
        return self.send(Call("DELETE", f"/keys/{quote(id, safe='')}", Any))

    def _post(
        self, path: str, body: object = None, kind: Any = Table, field: str | None = None
    ) -> Any:
        content = None if body is None else encoded(body)
        return self.send(Call("POST", self._path + path, kind, content, field))

    def _change(self, verb: str, choice: str | None, options: Mapping[str, Any]) -> Table:
        if choice is None:
            return self._post(f"/{verb}")
        return self._post("/choices", {"verb": verb, "choice": choice, **options})


def _with_id(request: Mapping[str, Any]) -> Table:
    identifier = request.get("id")
    return {**request, "id": new_identifier() if identifier is None else identifier}


class Client(Core, Operations):
    """A client for one bandit of a server; threads may share it.

    ``address`` is the URL of the server, or a list of URLs of servers with the same store. Without
    a ``bandit`` only ``send`` can be used, for operations on the whole server.

    A failed request is repeated, up to ``attempts`` times of ``timeout`` seconds each, and for at
    most ``deadline`` seconds in all. With several URLs, the next attempt goes to the next server.
    Decisions have ids and rewards have keys, so a request that arrives twice counts once. All
    errors are ``submax.Error``.
    """

    _lock, _process = Lock(), 0

    def export(self, path: str | Path) -> int:
        """Write the decisions of the bandit to a Parquet file; return its number of bytes."""
        if Path(path).suffix.lower() != ".parquet":
            raise InputError(
                f"a server sends Parquet: give a name that ends in .parquet, not {str(path)!r}; "
                "the store itself, --store FILE, also exports CSV",
                parameter="path",
            )
        # A client that only decides needs no NumPy.
        from submax.core.serialization import atomic_write

        call = Call("GET", f"{self._path}/export", bytes)
        url = self._servers[self._current] + call.path
        try:
            with self._connected().stream(call.method, url, timeout=SLOW_SECONDS) as answer:
                if answer.status_code != 200:
                    understood(answer.status_code, answer.read(), call)
                # Decisions may be about persons.
                with atomic_write(Path(path), private=True) as file:
                    file.writelines(answer.iter_bytes())
        except httpx.TransportError as error:
            raise StoreError(f"the export was interrupted ({error}): try again") from error
        return Path(path).stat().st_size

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        with self._lock:
            if self._process == os.getpid():
                self._http.close()
            self._process = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connected(self) -> httpx.Client:
        """Return the connections, new ones in a forked process: two must not share a socket."""
        if self._process not in (0, os.getpid()):
            # A thread of the parent may have held the lock when the process was forked.
            self._lock = Lock()
        with self._lock:
            if self._process != os.getpid():
                self._http, self._process = httpx.Client(**self._options), os.getpid()
            return self._http

    def send(self, call: Call[Answer]) -> Answer:
        exchange = self._exchange(call)
        try:
            attempt = next(exchange)
            while True:
                time.sleep(attempt.pause)
                try:
                    outcome: Outcome = self._connected().request(**attempt.request)
                except httpx.TransportError as error:
                    outcome = error
                attempt = exchange.send(outcome)
        except StopIteration as end:
            answered: Answer = end.value
            return answered


def awaited(
    operation: Callable[Concatenate[Any, Parameters], Answer],
) -> Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Answer]]:
    """Return the method of an ``AsyncClient`` for one of the ``Operations``."""

    @functools.wraps(operation)
    async def call(self: Any, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
        waiting: Any = operation(self, *args, **kwargs)
        answer: Answer = await waiting
        return answer

    return call


class AsyncClient(Core):
    """The asynchronous ``Client``: its methods are awaited.

    It is used in one event loop at a time. A reward in the background is a task:
    ``asyncio.create_task(client.reward(…))``.
    """

    _loop: asyncio.AbstractEventLoop | None = None

    decide = awaited(Operations.decide)
    decide_many = awaited(Operations.decide_many)
    reward = awaited(Operations.reward)
    reward_many = awaited(Operations.reward_many)
    activate = awaited(Operations.activate)
    create = awaited(Operations.create)
    show = awaited(Operations.show)
    lift = awaited(Operations.lift)
    set = awaited(Operations.set)
    add = awaited(Operations.add)
    pause = awaited(Operations.pause)
    resume = awaited(Operations.resume)
    retire = awaited(Operations.retire)
    archive = awaited(Operations.archive)
    delete = awaited(Operations.delete)
    versions = awaited(Operations.versions)
    publish = awaited(Operations.publish)
    roll_back = awaited(Operations.roll_back)
    erase = awaited(Operations.erase)
    audit = awaited(Operations.audit)
    bandits = awaited(Operations.bandits)
    keys = awaited(Operations.keys)
    add_key = awaited(Operations.add_key)
    revoke_key = awaited(Operations.revoke_key)
    _post, _change = Operations._post, Operations._change

    async def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        if self._loop is asyncio.get_running_loop():
            await self._http.aclose()
        self._loop = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _connected(self) -> httpx.AsyncClient:
        """Return the connections of this event loop; those of a loop that ended are dropped."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            if self._loop is not None and not self._loop.is_closed():
                raise InputError(
                    "this AsyncClient is used in another event loop, which is still open: create "
                    "one client for each loop"
                )
            self._http, self._loop = httpx.AsyncClient(**self._options), loop
        return self._http

    async def send(self, call: Call[Answer]) -> Answer:
        """Make any call; the methods cover the usual ones."""
        http, exchange = self._connected(), self._exchange(call)
        try:
            attempt = next(exchange)
            while True:
                await asyncio.sleep(attempt.pause)
                try:
                    outcome: Outcome = await http.request(**attempt.request)
                except httpx.TransportError as error:
                    outcome = error
                attempt = exchange.send(outcome)
        except StopIteration as end:
            answered: Answer = end.value
            return answered
