"""The other end of ``soak_worker.py``."""

import json
import queue
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

SCRIPT = Path(__file__).with_name("soak_worker.py")
ANSWER_SECONDS = 120.0
"""A command that is not answered within this time has hung; the longest is a version from scratch
after the log was read anew."""


class WorkerProcess:
    """A process that works on commands; ``open`` has those without an answer, by number."""

    def __init__(self, place, name):
        self.open = {}
        self._process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(place), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._lines = queue.Queue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self):
        return self._process.pid

    def send(self, command):
        """Send a command; its answer comes later."""
        self.open[command["number"]] = command
        self._process.stdin.write((json.dumps(command) + "\n").encode())
        self._process.stdin.flush()

    def answer(self):
        """Wait for the next answer; return the command and the answer."""
        line = self._lines.get(timeout=ANSWER_SECONDS)
        assert line is not None, "the worker has ended, and nobody ended it"
        return self._matched(line)

    def kill(self):
        """End the process without warning; return the answers that it still gave."""
        self._process.send_signal(signal.SIGKILL)
        return self._end()

    def close(self):
        """Let the process finish its commands and close the bandit; return its last answers."""
        answers = self._end()
        assert self._process.returncode == 0
        assert not self.open, "the worker closed, and has not answered all commands"
        return answers

    def _end(self):
        self._process.stdin.close()
        answers = []
        while (line := self._lines.get(timeout=ANSWER_SECONDS)) is not None:
            answers.append(self._matched(line))
        self._process.wait()
        self._reader.join()
        self._process.stdout.close()
        return answers

    def _matched(self, line):
        answer = json.loads(line)
        return self.open.pop(answer["number"]), answer

    def _read(self):
        for line in self._process.stdout:
            if line.endswith(b"\n"):
                self._lines.put(line)
        self._lines.put(None)
