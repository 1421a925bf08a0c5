"""An operation of the interface: what the routes and their description are made of."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from submax.server.keys import Key
from submax.server.service import Service


@dataclass(frozen=True)
class Call:
    """A request that was let in and read."""

    service: Service
    path: dict[str, str]
    body: Any
    key: Key | None


@dataclass(frozen=True)
class Operation:
    """One method of one path.

    ``scope`` is what a key needs to have, None where no key is needed; ``body`` and ``answer`` are
    the types of what comes and goes; ``cost`` is how much of the rate a request takes.
    """

    name: str
    method: str
    path: str
    scope: str | None
    summary: str
    answer: Any
    call: Callable[[Call], Awaitable[Any]]
    body: Any = None
    status: int = 200
    early: bool = False
    """Whether it is answered before the bandits are open."""
    partial: bool = False
    """Whether a key of some bandits may ask too, and is told of these only."""
    media: str = "application/json"
    cost: Callable[[Any], float] = lambda body: 1.0
