"""What clients send and receive: addresses, request bodies, answers and errors."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, Self, SupportsFloat, SupportsInt, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from submax.bandit.names import check_bandit, new_identifier
from submax.core.decoding import known_type
from submax.core.errors import ConflictError, ForbiddenError, InputError, NotFoundError, StoreError

RewardValue = float | Mapping[str, float] | Sequence[float]
"""A reward, a table of rewards by name or slot, or a list with one reward for each slot."""
RETRIED = (429, 503)
"""Statuses after which the same request is sent again: too many requests, or unavailable."""
REFUSALS: dict[int, type[InputError]] = {
    401: ForbiddenError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
}
"""The error that each status stands for; any other status below 500 is an ``InputError``."""

Answer = TypeVar("Answer")


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


class Server(NamedTuple):
    """A server: its URL without a trailing slash, and its host and port for messages."""

    url: str
    host: str

    @classmethod
    def of(cls, address: str) -> Self:
        """Parse an address such as http://127.0.0.1:8000."""
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
        place = parts.netloc.rpartition("@")[2]
        return cls(f"{parts.scheme}://{place}{parts.path.rstrip('/')}", place)


def servers_of(address: str | Sequence[str]) -> list[Server]:
    """Parse one address, or several between which a client fails over."""
    addresses = [address] if isinstance(address, str) else list(address)
    if not addresses:
        raise InputError("give the URL of at least one server", parameter="address")
    return [Server.of(one) for one in addresses]


def bandit_path(bandit: str) -> str:
    """Return the path of a bandit on its server."""
    check_bandit(bandit)
    return f"/bandits/{quote(bandit)}"


def headers_of(key: str | None) -> dict[str, str]:
    """Return the headers of every request."""
    headers = {"Content-Type": "application/json"}
    if key is not None:
        if not (key.isascii() and key.isprintable()):
            raise InputError(
                "this is not a key: give the whole text submax.….… that submax keys add "
                "has printed",
                parameter="key",
            )
        headers["Authorization"] = f"Bearer {key}"
    return headers


def decision_body(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a decision request. It has an id, so the request can be repeated."""
    for value in (request.get("context") or {}).values():
        _finite(value)
    identifier = request.get("id")
    return {**request, "id": new_identifier() if identifier is None else identifier}


def reward_body(reward: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a reward."""
    value = reward["value"]
    numbers: Iterable[object] = [value]
    if isinstance(value, Mapping):
        numbers = value.values()
    elif isinstance(value, (list, tuple)):
        numbers = value
    for number in numbers:
        _finite(number)
    return {field: given for field, given in reward.items() if given is not None}


def encoded(body: object) -> bytes:
    """Encode a body as JSON, or raise an ``InputError`` for what JSON cannot express."""
    try:
        return msgspec.json.encode(body, enc_hook=_plain)
    except (TypeError, UnicodeError) as error:
        raise InputError(
            f"the request cannot be written as JSON ({error}): give texts, numbers, lists, tables"
        ) from error


def _plain(value: object) -> object:
    """Convert a number of NumPy, which msgspec does not know."""
    if isinstance(value, (SupportsInt, SupportsFloat)) and hasattr(value, "item"):
        return _finite(value.item())
    raise TypeError(f"{value!r:.60} is not a text, number, list or table")


def _finite(value: object) -> object:
    """Refuse NaN and infinity: JSON cannot express them, and null would mean "missing"."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"a number must be finite, not {value}")
    return value


def understood(status: int, content: bytes, call: Call[Answer]) -> Answer:
    """Return the answer to a call, or raise the error that it reports."""
    if not 200 <= status < 300:
        sentence, code = failure(content)
        raise REFUSALS.get(status, StoreError if status >= 500 else InputError)(sentence, code=code)
    try:
        if call.field is None:
            return msgspec.json.decode(content, type=known_type(call.kind))
        fields: dict[str, Any] = msgspec.json.decode(
            content, type=known_type(dict[str, msgspec.Raw])
        )
        return msgspec.json.decode(fields[call.field], type=known_type(call.kind))
    except (msgspec.DecodeError, KeyError) as error:
        raise StoreError(
            f"this is not the answer of a submax server ({error}): check the URL"
        ) from error


def failure(content: bytes) -> tuple[str, str | None]:
    """Return the sentence and the code of an error that a server reports."""
    try:
        report = msgspec.json.decode(content, type=dict[str, str])
        return report["error"], report.get("code")
    except (msgspec.DecodeError, KeyError):
        return content[:200].decode(errors="replace"), None
