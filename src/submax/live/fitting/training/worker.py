"""A second process of Python, with pipes to and from it."""

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from threading import Timer
from typing import BinaryIO, cast

MODULE = "submax.live.fitting.training.run"
READY = b"submax trains models here\n"
"""The first line that the process writes."""
ENDING_SECONDS = 2.0
"""How long to wait for a process that was killed or has closed its output."""
STDERR_TAIL_BYTES = 2000
"""Of what a process wrote to standard error, the last bytes are kept, this many."""


class Worker:
    """Runs ``MODULE`` by ``sys.executable``, which must be a Python interpreter.

    An ``OSError`` is raised if it cannot be started.
    """

    def __init__(self) -> None:
        # Not a pipe, which would fill up; nobody reads it while all goes well.
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end
        try:
            self._process = subprocess.Popen(
                # With -m alone, Python would look for modules in the current folder first.
                [sys.executable or "", "-P", "-m", MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                env={**os.environ, "PYTHONPATH": _module_folders()},
            )
        except OSError:
            self._complaints.close()
            raise
        # Popen calls its pipes IO[bytes] | None: here are pipes, with the methods of BinaryIO.
        self.sends = cast(BinaryIO, self._process.stdin)
        self.receives = cast(BinaryIO, self._process.stdout)

    def is_ready(self, seconds: float) -> bool:
        """Whether it has started within this time; if not, it is killed."""
        late = Timer(seconds, self.kill)
        late.daemon = True
        late.start()
        try:
            return self.receives.readline() == READY
        finally:
            late.cancel()

    @property
    def has_ended(self) -> bool:
        """Whether the process is no longer running."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """Kill the process; another thread may be waiting for its answer."""
        self._process.kill()

    def wait(self) -> None:
        """Wait until the process has ended by itself, for some seconds at most."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDING_SECONDS)

    def end(self) -> tuple[str, int | None]:
        """Kill the process if it is running; return what it complained about, and its status."""
        self.kill()
        self.wait()
        for stream in (self.sends, self.receives):
            with suppress(OSError):
                stream.close()
        with self._complaints as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - STDERR_TAIL_BYTES))
            return file.read().decode(errors="replace"), self._process.returncode


def _module_folders() -> str:
    """Return where this process looks for modules; an empty entry means the current folder."""
    return os.pathsep.join(folder or os.curdir for folder in sys.path)
