"""Ends the process some seconds after it was asked to stop, whatever it does then."""

import os
import time
from threading import Event, Thread

ENDING_SECONDS = 7.5
"""How long the process may take to end in order after SIGTERM: service managers such as Docker kill
after 10 seconds, and a busy machine needs some of them to start and to end."""


class Ending:
    """A thread that ends the process if it does not end by itself in time.

    It is started before it is needed: a signal may arrive while the main thread holds the locks
    that are needed to start a thread. Nothing that was acknowledged is lost.
    """

    def __init__(self, seconds: float = ENDING_SECONDS) -> None:
        self._seconds, self._asked = seconds, Event()
        Thread(target=self._run, name="submax-ending", daemon=True).start()

    def begin(self) -> None:
        """Begin to count the seconds; further calls change nothing."""
        self._asked.set()

    def _run(self) -> None:
        self._asked.wait()
        time.sleep(self._seconds)
        os._exit(1)
