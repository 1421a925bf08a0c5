"""One request that is answered without ASGI, and what was done about it."""

from submax.web.server.interface.incoming import Endpoint
from submax.web.server.interface.small_request import SmallRequest


class NoEvent:
    """In place of the event that tells an ASGI application that more of its request came."""

    def set(self) -> None:
        """Do nothing: the request is complete."""


class QuickCycle:
    """A complete request and its state, with the attributes of uvicorn's ``RequestResponseCycle``.

    uvicorn's protocol reads and sets them if the connection is lost or the server stops.
    """

    __slots__ = (
        "disconnected",
        "endpoint",
        "keep_alive",
        "request",
        "response_complete",
        "response_started",
    )
    message_event = NoEvent()

    def __init__(self, request: SmallRequest, endpoint: Endpoint, keep_alive: bool) -> None:
        self.request, self.endpoint, self.keep_alive = request, endpoint, keep_alive
        self.disconnected = self.response_started = self.response_complete = False
