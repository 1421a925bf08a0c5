"""Limits that keep one client from taking the server from others."""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from submax.core.errors import Error, InputError

if TYPE_CHECKING:
    # Commands use the messages without a server.
    from starlette.types import Receive

LARGEST_BODY = 1_000_000  # bytes: a thousand decisions with large contexts fit
BODY_SECONDS = 10.0  # for which a body may take to arrive: a million bytes at a slow phone's speed
CODES = {
    400: "invalid-input",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    408: "too-slow",
    413: "too-large",
    415: "not-json",
    429: "too-many-requests",
    500: "defect",
    503: "unavailable",
}
"""The error codes of refused requests, by status."""
RETRY_SOON = {"Retry-After": "1"}


class RefusedError(Error):
    """A request that the server refuses with a status, and perhaps with headers."""

    def __init__(
        self,
        status: int,
        sentence: str,
        headers: Mapping[str, str] | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(sentence, code=code or CODES[status])
        challenge = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
        self.status, self.headers = status, {**challenge, **(headers or {})}


async def read_body(headers: Mapping[str, str], receive: "Receive") -> bytes:
    """The body of a request; reading stops as soon as it is too long or too slow."""
    length, body, ends = headers.get("content-length", ""), bytearray(), False
    too_large = f"the body has more than {LARGEST_BODY} bytes: send smaller requests"
    if length.isdecimal() and float(length) > LARGEST_BODY:
        raise RefusedError(413, too_large)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while not ends:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise RefusedError(400, "the request ended too early: send it again")
                body += message.get("body", b"")
                # The end of a body of a known length need not be waited for.
                ends = length == str(len(body)) or not message.get("more_body", False)
                if len(body) > LARGEST_BODY:
                    raise RefusedError(413, too_large)
    except TimeoutError as error:
        raise RefusedError(
            408,
            f"the request did not arrive within {BODY_SECONDS:g} seconds: send it faster, or "
            "in smaller parts",
            {"Connection": "close"},
        ) from error
    return bytes(body)


class RateLimit:
    """A token bucket for each caller.

    It gains ``rate`` tokens a second and holds at most max(rate, 1) tokens. Callers are keys,
    bandits that exist and operations, so their number is bounded.

    >>> limit = RateLimit(clock=lambda: 0.0)
    >>> [limit.allows("me", 2.0) for _ in range(3)]
    [True, True, False]
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[object, tuple[float, float]] = {}

    def allows(self, caller: object, rate: float, cost: float = 1.0) -> bool:
        """Take ``cost`` tokens if the bucket has them, or is full; return whether it did.

        A full bucket allows even a larger cost, and must then fill up from below zero.
        """
        now, most = self._clock(), max(rate, 1.0)
        level, before = self._buckets.get(caller, (most, now))
        level = min(most, level + (now - before) * rate)
        allowed = level >= min(cost, most)
        self._buckets[caller] = (level - cost if allowed else level, now)
        return allowed


# The largest numbers that a policy may be given over HTTP. Python callers may give any number: who
# runs their own code can wait for it. Over HTTP a number must not occupy the server forever.

OTHERS = 10_000.0
"""The limit of parameters that are not listed: those of classifiers of other libraries, such as
trees or iterations, and of policies of installed packages."""
LIMITS: dict[str, float] = {
    name: limit
    for limit, names in {
        # Repetitions, each of which takes time in every decision or update, and sizes.
        64.0: "components",
        100.0: "asked bin_edges climbs depth levels restarts sweeps",
        128.0: "latent",
        1e3: "candidates masks points",
        1024.0: "hidden",
        2e3: "draws features",
        5e3: "effects",
        8192.0: "batch",
        2e4: "rows steps",
        2.0**17: "max_enumerated_actions",
        1e7: "reservoir window",
        # Shares, weights and scales, and numbers that are compared with counts, cost nothing.
        1e9: "alpha beta confidence_scale context_length discount distribution dropout epsilon "
        "exploration failure horizon kl_weight largest_weight leader learning_rate length "
        "minimum_rows prior_variance quantiles regularization ridge scale sharpness smoothing step "
        "strength temperature weight weight_decay width",
    }.items()
    for name in names.split()
}
"""The largest size of each parameter of policies, estimators, strategies and scales of rewards, by
name; a test asserts that no parameter is missing."""
FREE = ("low", "high", "values")
"""Numbers that say which rewards are possible, and cost nothing: the scale checks them itself. So
do the weights of named rewards, which are checked with the declaration."""


def check_parameters(declaration: Mapping[str, object]) -> None:
    """Refuse a declaration in which a parameter of the policy or of the rewards is too large.

    >>> check_parameters({"policy": {"kind": "thompson", "beta": 9}})
    """
    for word in ("policy", "rewards"):
        _check_numbers((word,), declaration.get(word))


def _check_numbers(path: tuple[str, ...], value: object) -> None:
    if isinstance(value, Mapping):
        for name, one in value.items():
            _check_numbers((*path, str(name)), one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            _check_numbers(path, one)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        limit = _limit(path)
        if limit is not None and abs(value) > limit:
            raise InputError(
                f"{'.'.join(path)} is {value}, but over HTTP it may be at most {limit:,.10g}: give "
                "a smaller number, or declare the bandit on the server's machine with submax.open"
            )


def _limit(path: tuple[str, ...]) -> float | None:
    if "parameters" in path:
        return OTHERS
    if path[0] == "rewards":
        named = len(path) == 2 and path[1] not in LIMITS
        if named or path[1:2] == ("weights",) or path[-1] in FREE:
            return None
    return LIMITS.get(path[-1], OTHERS)
