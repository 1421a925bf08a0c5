"""Calls of Python that end before a time limit."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple, Self

from tuning import UNFINISHED

TUNING = Path(__file__).with_name("tuning.py")
SECONDS_TO_STOP = 15
"""Time before the limit at which calls are stopped, so that files can be written."""
PATIENCE = 5
"""Seconds that a call has to end itself after it was asked to."""


class TimedCalls(NamedTuple):
    """Calls that are all stopped shortly before the same time, ``end``; never if it is None."""

    end: float | None

    @classmethod
    def of(cls, minutes: float | None) -> Self:
        """Return calls that end within some minutes from now."""
        return cls(None if minutes is None else time.monotonic() + 60 * minutes - SECONDS_TO_STOP)

    @property
    def seconds(self) -> float | None:
        """Seconds that are left; None if there is no limit."""
        return None if self.end is None else max(0.0, self.end - time.monotonic())

    def tune(self, *arguments: str) -> None:
        """Run tuning.py, which stops itself in time and keeps what is finished."""
        seconds = self.seconds
        limit = [] if seconds is None else ["--minutes", f"{seconds / 60:.3f}"]
        _finish(_start(str(TUNING), *arguments, *limit), None)

    def run(self, *arguments: str) -> None:
        """Run Python with these arguments, and stop it with its processes if the time is up."""
        _finish(_start(*arguments), self.seconds)


def _start(*arguments: str) -> "subprocess.Popen[bytes]":
    """Start Python in a session of its own, so that all its processes can be stopped."""
    print("python", *arguments, flush=True)
    return subprocess.Popen([sys.executable, *arguments], start_new_session=True)


def _finish(process: "subprocess.Popen[bytes]", seconds: float | None) -> None:
    """Wait for a call, at most some seconds, and stop this command if the call did not succeed."""
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        _stop(process)
        status = UNFINISHED
    except KeyboardInterrupt:
        _stop(process)
        raise
    if status == UNFINISHED:
        print("The time is up: the same command goes on from here.", flush=True)
    if status:
        raise SystemExit(status)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """End a call and the processes that it has started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(PATIENCE)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
