"""The requests that come to the server, and the functions that answer them."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from submax.web.server.interface.small_request import SmallRequest

Incoming = Request | SmallRequest
"""A request that came through ASGI, or one that was received as a whole."""
Endpoint = Callable[[Incoming], Awaitable[Response]]
