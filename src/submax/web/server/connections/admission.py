"""Admits requests as long as there is room for them; some room is reserved."""

from collections.abc import Callable

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from submax.web.server.access.key_registry import KeyRegistry
from submax.web.server.interface.responses import failure

STRANGERS_SHARE = 0.8
"""The share of the connections that requests without a known key may use at the same time."""
KNOWN_SHARE = 0.95
"""The share that requests with a known key may use as well; the rest is for health checks."""
HEALTH = ("/healthz", "/readyz")
"""The paths of health checks."""


class Admission:
    """An ASGI application that passes requests on to ``app``, at most ``most`` at the same time.

    Above ``STRANGERS_SHARE`` of ``most`` only requests with a known key and health checks are
    admitted, and above ``KNOWN_SHARE`` only health checks. If the store never had a key, every
    request counts as known. Others are answered with 503; ``refused`` is then called.
    """

    def __init__(
        self, app: ASGIApp, keys: KeyRegistry, most: int, refused: Callable[[], None]
    ) -> None:
        self._app, self._keys, self._refused = app, keys, refused
        self._most, self._under_way = most, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif not self.enter(_authorization(scope), scope["path"]):
            await self.refusal()(scope, receive, send)
        else:
            try:
                await self._app(scope, receive, send)
            finally:
                self.leave()

    def enter(self, authorization: str, path: str = "") -> bool:
        """Begin a request, which ``leave`` must end; False if there is no room for it.

        ``authorization`` is the header of this name. The path matters only for health checks.
        """
        used = self._under_way / self._most
        # Keys are looked up only if it matters.
        has_room = (
            used < STRANGERS_SHARE
            or (used < KNOWN_SHARE and self._is_known(authorization))
            or path in HEALTH
        )
        self._under_way += has_room
        return has_room

    def leave(self) -> None:
        """End a request that was begun by ``enter``."""
        self._under_way -= 1

    def refusal(self) -> Response:
        """Count a request for which there is no room, and return the answer to it."""
        self._refused()
        return failure(
            503,
            "the server has too many requests under way and does not begin this one: try again",
            {"Retry-After": "1", "Connection": "close"},
        )

    def _is_known(self, authorization: str) -> bool:
        if not self._keys.needed:
            return True
        kind, _, text = authorization.partition(" ")
        return kind.lower() == "bearer" and self._keys.find(text.strip()) is not None


def _authorization(scope: Scope) -> str:
    return next(
        (value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"),
        "",
    )
