"""Threads of Python take short turns while work in the background computes."""

import sys
from contextlib import ContextDecorator
from threading import Lock

TURN_SECONDS = 0.00002
"""How long a thread of Python computes before it lets another one run, while somebody asked for
short turns: less than 50 microseconds, which is about the precision of the system's timers. A
decision waits for its turn several times, for example after it was written to the disk. With
Python's own turns of 5 milliseconds, a decision that takes 0.3 milliseconds would take 20 or more
during a fit."""
HALF_MICROSECOND = 5e-7
"""Added to what is set, because Python cuts off fractions of a microsecond: without it, turns would
become shorter by a microsecond whenever they are restored."""


class ShortTurns(ContextDecorator):
    """While at least one block is entered, all threads of this process take short turns.

    Turns cost processor time only if threads compete. At the end of the last block turns are as
    long as before; whoever sets them shorter, or sets them during a block, is left alone.
    """

    def __init__(self, seconds: float = TURN_SECONDS) -> None:
        self._seconds, self._lock = seconds, Lock()
        self._entered, self._before, self._set = 0, 0.0, 0.0

    def __enter__(self) -> None:
        with self._lock:
            self._entered += 1
            if self._entered == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._seconds, self._before) + HALF_MICROSECOND)
                self._set = sys.getswitchinterval()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._entered -= 1
            if self._entered == 0 and sys.getswitchinterval() == self._set:
                sys.setswitchinterval(self._before + HALF_MICROSECOND)


SHORT_TURNS = ShortTurns()
"""The turns of this process."""
