"""The server of uvicorn, which always ends soon after it was asked to."""

from types import FrameType

import uvicorn

from submax.web.server.running.ending import Ending


class StoppableServer(uvicorn.Server):
    """A server that begins the ``ending`` of the process when a signal asks it to stop."""

    def __init__(self, config: uvicorn.Config, ending: Ending) -> None:
        super().__init__(config)
        self._ending = ending

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._ending.begin()
        super().handle_exit(sig, frame)
