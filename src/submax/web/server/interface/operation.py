"""An operation of the interface, from which its route and its description are made."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from submax.web.dashboard.page import Page
from submax.web.server.access.key import BROWSER_SCOPES, KEY_PARAMETER, Key
from submax.web.server.service import Service


@dataclass(frozen=True)
class OperationCall:
    """A request that was authenticated and decoded."""

    service: Service
    path: dict[str, str]
    body: Any
    key: Key | None
    query: Mapping[str, str] = field(default_factory=dict)
    encrypted: bool = False
    """Whether the request came through HTTPS, to this server or to a proxy before it."""


@dataclass(frozen=True)
class Operation:
    """One method of one path.

    ``scope`` is the scope that a key needs, None if no key is needed. ``body`` and ``answer`` are
    the types of request and response. ``cost`` says for how many requests a body counts in the rate
    limit. ``subject`` names what was changed, from the call and its answer.
    """

    name: str
    method: str
    path: str
    scope: str | None
    summary: str
    answer: Any
    call: Callable[[OperationCall], Awaitable[Any]]
    body: Any = None
    status: int = 200
    early: bool = False
    """Whether it is answered before all bandits are open."""
    partial: bool = False
    """Whether a key for some bandits may call it too; the answer then has only these bandits."""
    frequent: bool = False
    """Whether small requests are answered by ``QuickProtocol``: operations on one bandit, by POST,
    whose body and answer are JSON."""
    media: str = "application/json"
    page: Page | None = None
    """The page that shows the answer to a browser, if there is one."""
    slow: bool = False
    """Whether a policy is tried first, so that clients should wait longer for the answer."""
    query: Mapping[str, str] = field(default_factory=dict)
    """What each query parameter means."""
    cost: Callable[[Any], float] = lambda body: 1.0
    subject: Callable[[OperationCall, Any], str] = lambda call, answer: next(
        iter(call.path.values()), ""
    )

    @property
    def takes_key_in_query(self) -> bool:
        """Whether a query parameter may hold a key for browsers, for beacons without headers."""
        return self.scope in BROWSER_SCOPES

    @property
    def query_names(self) -> frozenset[str]:
        """The names of all query parameters that are allowed; others are refused."""
        names = frozenset(self.query)
        return names | {KEY_PARAMETER} if self.takes_key_in_query else names

    @property
    def audited(self) -> bool:
        """Whether it changes bandits or keys, so that it is recorded who called it."""
        return self.scope == "admin" and self.method != "GET"
