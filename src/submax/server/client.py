"""A client for bandits over HTTP."""

import http.client
import math
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from threading import local
from typing import Any, Self, SupportsFloat, SupportsInt, TypeVar
from urllib.parse import SplitResult, quote, urlsplit

import msgspec

from submax.core.checks import positive, whole_number
from submax.core.errors import (
    ConflictError,
    ForbiddenError,
    InputError,
    NotFoundError,
    StoreError,
)
from submax.live.declaring.names import check_bandit, new_identifier
from submax.live.lift.lift_report import LiftReport
from submax.live.serving.decision import Decision, Receipt

RETRIED = (429, 503)
"""Statuses after which the same request is sent again: too many requests, or unavailable."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds before the second attempt, and at most between two: the pause doubles each time."""
Answer = TypeVar("Answer")


class Client:
    """A client for one bandit of a server.

    A request that fails on its way is sent again, up to ``attempts`` times. Every decision has an
    id before it is sent and every reward has a key, so that a request that arrives twice has the
    effect of one. A client may be used from several threads, each of which has its own open
    connection.
    """

    def __init__(
        self,
        address: str,
        bandit: str,
        *,
        key: str | None = None,
        timeout: float = 10.0,
        attempts: int = 8,
    ) -> None:
        parts = _parts(address)
        check_bandit(bandit)
        positive("timeout", timeout)
        whole_number("attempts", attempts, at_least=1)
        if key is not None and not (key.isascii() and key.isprintable()):
            raise InputError(
                "the key has characters that no key has: give the whole text submax.….… that "
                "submax keys add has printed"
            )
        self._secure, self._place = parts.scheme == "https", parts.netloc.rpartition("@")[2]
        self._path = f"{parts.path.rstrip('/')}/bandits/{quote(bandit)}"
        self._headers = {"Content-Type": "application/json"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key}"
        self._timeout, self._attempts = timeout, attempts
        self._own = local()

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
        request = _request(context, id, eligible, activate, unit)
        return self._send("POST", "/decide", request, Decision)

    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """As ``Bandit.decide_many``."""
        named = [_request(**request) for request in requests]
        answer = self._send("POST", "/decide-many", {"requests": named}, dict[str, list[Decision]])
        return answer["decisions"]

    def reward(self, id: str, value: float, *, key: str = "reward") -> Receipt:  # noqa: A002 - the same word as in decide
        """As ``Bandit.reward``."""
        body = {"id": id, "value": _finite(value), "key": key}
        return self._send("POST", "/reward", body, Receipt)

    def reward_many(self, rewards: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """As ``Bandit.reward_many``."""
        body = {"rewards": [dict(reward) for reward in rewards]}
        for reward in body["rewards"]:
            _finite(reward.get("value"))
        return self._send("POST", "/reward-many", body, dict[str, list[Receipt]])["receipts"]

    def activate(self, id: str) -> Receipt:  # noqa: A002 - the same word as in decide
        """As ``Bandit.activate``."""
        return self._send("POST", "/activate", {"id": id}, Receipt)

    def show(self) -> dict[str, Any]:
        """The bandit: its actions, settings, version and counts."""
        return self._send("GET", "", None, dict[str, Any])

    def lift(self) -> list[LiftReport]:
        """As ``Bandit.lift``."""
        return self._send("GET", "/lift", None, dict[str, list[LiftReport]])["lifts"]

    def set(self, **changes: Any) -> dict[str, Any]:
        """Change settings as ``Bandit.set`` does, and return the bandit as ``show`` does."""
        return self._send("PATCH", "", changes, dict[str, Any])

    def pause(self) -> dict[str, Any]:
        """Pause the bandit, as ``Bandit.pause`` does."""
        return self._send("POST", "/pause", None, dict[str, Any])

    def resume(self) -> dict[str, Any]:
        """Resume the bandit, as ``Bandit.resume`` does."""
        return self._send("POST", "/resume", None, dict[str, Any])

    def archive(self) -> dict[str, Any]:
        """Archive the bandit, as ``Bandit.archive`` does."""
        return self._send("POST", "/archive", None, dict[str, Any])

    def close(self) -> None:
        """Close the connection of this thread."""
        connection = getattr(self._own, "connection", None)
        if connection is not None:
            connection.close()
            self._own.connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, method: str, path: str, body: object, kind: type[Answer]) -> Answer:
        data = None if body is None else _encoded(body)
        pause = FIRST_PAUSE
        for attempt in range(1, self._attempts + 1):
            try:
                status, answer = self._once(method, path, data)
                if status not in RETRIED:
                    return _understood(status, answer, kind)
                reason, _ = _failure(answer)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                reason = f"{type(error).__name__}: {error}"
            if attempt < self._attempts:
                # A random factor, so that clients that failed together do not retry together.
                time.sleep(pause * (0.5 + random.random()))
                pause = min(2 * pause, LONGEST_PAUSE)
        raise StoreError(
            f"no answer from {self._place} after {self._attempts} attempts ({reason}): see that "
            "the server runs and that the address is right"
        )

    def _once(self, method: str, path: str, data: bytes | None) -> tuple[int, bytes]:
        connection = getattr(self._own, "connection", None)
        if connection is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            connection = self._own.connection = kind(self._place, timeout=self._timeout)
        connection.request(method, self._path + path, data, self._headers)
        response = connection.getresponse()
        return response.status, response.read()


def _parts(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts
    except ValueError:
        pass
    raise InputError(
        f"the address {address!r} is no address of a server: write it like http://127.0.0.1:8000"
    )


def _encoded(body: object) -> bytes:
    try:
        return msgspec.json.encode(body, enc_hook=_plain)
    except (TypeError, UnicodeError) as error:
        raise InputError(
            f"the request cannot be written as JSON ({error}): give texts, numbers, lists, tables"
        ) from error


def _plain(value: object) -> object:
    """A number of NumPy as a number of Python."""
    if isinstance(value, (SupportsInt, SupportsFloat)) and hasattr(value, "item"):
        return _finite(value.item())
    raise TypeError(f"{value!r:.60} is no text, number, list or table")


def _finite(value: object) -> object:
    """Refuse NaN and infinity: JSON has no word for them, and null would mean "missing"."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"a number must be finite, not {value}")
    return value


def _request(
    context: Mapping[str, Any] | None = None,
    id: str | None = None,  # noqa: A002 - the same word as in decide
    eligible: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    activate: bool = True,
    unit: str | None = None,
) -> dict[str, Any]:
    """The body of a decision request, with an id, so that it can be sent again."""
    for value in (context or {}).values():
        _finite(value)
    return {
        "context": context,
        "id": new_identifier() if id is None else id,
        "eligible": eligible,
        "activate": activate,
        "unit": unit,
    }


def _understood(status: int, answer: bytes, kind: type[Answer]) -> Answer:
    if 200 <= status < 300:
        try:
            return msgspec.json.decode(answer, type=kind)
        except msgspec.DecodeError as error:
            raise StoreError(
                f"the answer is not one of a submax server ({error}): check the address"
            ) from error
    kind_of: dict[int, type[InputError]] = {
        401: ForbiddenError,
        403: ForbiddenError,
        404: NotFoundError,
        409: ConflictError,
    }
    sentence, code = _failure(answer)
    if status >= 500:
        raise StoreError(sentence, code=code)
    raise kind_of.get(status, InputError)(sentence, code=code)


def _failure(answer: bytes) -> tuple[str, str | None]:
    """The message and the code of an error answer."""
    try:
        found = msgspec.json.decode(answer, type=dict[str, str])
        return found["error"], found.get("code")
    except (msgspec.DecodeError, KeyError):
        return answer[:200].decode(errors="replace"), None
