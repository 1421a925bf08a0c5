"""Sends requests of several callers together, and gives each caller its own answer or error.

The functions send nothing themselves: they yield calls, and are sent the answer to each, or the
exception that it raised. So threads and event loops share them.
"""

import time
from collections.abc import Generator, Sequence
from typing import Any

from submax.bandit.decision import Decision, Receipt
from submax.core.errors import ForbiddenError, InputError, StoreError, SubmaxError
from submax.web.server.client.batching.item import Item, settle
from submax.web.server.client.messages.bodies import joined
from submax.web.server.client.messages.call import Call
from submax.web.server.client.messages.deadline_error import DeadlineError

LARGEST_BATCH = 200
"""Requests in one call: of 1000 that the server allows, so many that no call takes long."""
LARGEST_BODY = 500_000
"""Bytes of all bodies in one call: half of what the server allows."""
Exchange = Generator[Call, Any, None]


def next_batch(waiting: Sequence[Item]) -> int:
    """How many of the waiting requests are sent together next; at least one."""
    size = 0
    for count, item in enumerate(waiting[:LARGEST_BATCH]):
        size += len(item.body)
        if size > LARGEST_BODY:
            return max(count, 1)
    return min(len(waiting), LARGEST_BATCH)


def decide_all(items: Sequence[Item]) -> Exchange:
    """Make the decisions of several callers in as few calls as possible."""
    if len(items) == 1:
        settle(items[0], (yield Call("POST", "/decide", items[0].body, Decision, items[0].until)))
        return
    body = joined("requests", [item.body for item in items])
    kind = dict[str, list[Decision]]
    found = yield Call("POST", "/decide-many", body, kind, _earliest(items))
    if isinstance(found, Exception):
        yield from _after_failure(items, found, decide_all)
    else:
        _settle_each(items, found.get("decisions", []))


def reward_all(items: Sequence[Item]) -> Exchange:
    """Record the rewards of several callers in as few calls as possible."""
    if len(items) == 1:
        settle(items[0], (yield Call("POST", "/reward", items[0].body, Receipt, items[0].until)))
        return
    body = joined("rewards", [item.body for item in items])
    kind = dict[str, list[Receipt]]
    found = yield Call("POST", "/reward-many", body, kind, _earliest(items))
    if isinstance(found, Exception):
        yield from _after_failure(items, found, reward_all)
        return
    receipts = found.get("receipts", [])
    for item, receipt in zip(items, receipts, strict=False):
        # A single reward that conflicts has an error with a sentence; it is asked for by itself.
        if receipt.status == "conflict":
            yield from reward_all([item])
    _settle_each(items, receipts)


def _after_failure(items: Sequence[Item], error: Exception, again: Any) -> Exchange:
    """Find the requests that are wrong by halving; the others are sent again, with their ids."""
    if isinstance(error, DeadlineError):
        over = max(time.monotonic(), _earliest(items) or 0.0)
        left = [item for item in items if item.until is None or item.until > over]
        _settle_failed([item for item in items if item.until and item.until <= over], error)
        if left:
            yield from again(left)
    elif isinstance(error, InputError) and not isinstance(error, ForbiddenError):
        middle = len(items) // 2
        yield from again(items[:middle])
        yield from again(items[middle:])
    else:
        _settle_failed(items, error)


def _settle_failed(items: Sequence[Item], error: Exception) -> None:
    """Every caller gets an error of its own, because raising an error changes it."""
    for item in items:
        own = type(error)(str(error), code=error.code) if isinstance(error, SubmaxError) else error
        settle(item, own)


def _settle_each(items: Sequence[Item], answers: Sequence[Any]) -> None:
    if len(answers) != len(items):
        _settle_failed(
            items, StoreError("the answer is not one of a submax server: check the address")
        )
        return
    for item, answer in zip(items, answers, strict=True):
        settle(item, answer)


def _earliest(items: Sequence[Item]) -> float | None:
    times = [item.until for item in items if item.until is not None]
    return min(times, default=None)
