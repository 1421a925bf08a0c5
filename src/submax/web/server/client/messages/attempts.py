"""How often a request is sent, and how long is waited in between."""

import random
import time

from submax.core.errors import StoreError
from submax.web.server.client.messages.deadline_error import DeadlineError

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds before the second attempt, and at most between two: the pause doubles each time."""


class Attempts:
    """The attempts of one request to the server at ``place``.

    There are ``most`` attempts of ``timeout`` seconds each. ``until`` is a time by the monotonic
    clock after which none is begun and none goes on; None: no such time.
    """

    def __init__(self, place: str, most: int, timeout: float, until: float | None) -> None:
        self._place, self._most, self._timeout, self._until = place, most, timeout, until
        self._made, self._pause = 0, FIRST_PAUSE
        self._reason = "nothing was sent yet"

    def begin(self) -> float:
        """The seconds that the next attempt may take."""
        self._made += 1
        if self._until is None:
            return self._timeout
        left = self._until - time.monotonic()
        if left <= 0:
            raise self._too_late()
        return min(left, self._timeout)

    def pause_after(self, reason: str) -> float:
        """The seconds to wait before the next attempt; an error if there is none."""
        self._reason = reason
        if self._made >= self._most:
            raise StoreError(
                f"no answer from {self._place} after {self._made} attempts ({reason}): see that "
                "the server runs and that the address is right"
            )
        # A random factor, so that clients that failed together do not retry together.
        pause = self._pause * (0.5 + random.random())
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        if self._until is not None and time.monotonic() + pause >= self._until:
            raise self._too_late()
        return pause

    def _too_late(self) -> DeadlineError:
        return DeadlineError(
            f"no answer from {self._place} before the deadline, after {self._made} attempts "
            f"({self._reason}): see that the server runs, or give a longer deadline"
        )
