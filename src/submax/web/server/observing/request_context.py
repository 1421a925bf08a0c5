"""The request that is being answered, for everything that is logged meanwhile."""

import re
from contextvars import ContextVar
from typing import Any

from submax.bandit.names import new_identifier

IDENTIFIER = re.compile(r"[!-~]{1,128}", re.ASCII)
"""A request id that is taken over from a caller or a proxy; others are replaced."""


class RequestContext:
    """One request, with the operation that answers it and an id by which people can find it.

    The id is that of the header X-Request-ID, or a new one, which is made when it is first needed.
    """

    __slots__ = ("_identifier", "operation", "request")

    def __init__(self, operation: str, request: Any) -> None:
        self.operation, self.request = operation, request
        self._identifier: str | None = None

    @property
    def given_identifier(self) -> str | None:
        """The id that came with the request."""
        found = self.request.headers.get("x-request-id")
        return found if found is not None and IDENTIFIER.fullmatch(found) else None

    @property
    def identifier(self) -> str:
        """The id of the request."""
        if self._identifier is None:
            self._identifier = self.given_identifier or new_identifier()
        return self._identifier

    @property
    def bandit(self) -> str:
        """The bandit in the path; empty if there is none."""
        name: str = self.request.path_params.get("name", "")
        return name


CURRENT: ContextVar[RequestContext | None] = ContextVar("submax_request", default=None)
"""The request that is being answered; None if there is none."""
