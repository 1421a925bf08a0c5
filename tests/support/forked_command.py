"""Processes that begin with the library imported, which takes most of a start."""

import multiprocessing
import os
import subprocess
import sys
from typing import Any

PRELOADED = (
    "scipy.linalg",
    "scipy.sparse",
    "scipy.special",
    "submax.cli.serving",
    "submax.bandit.durable",
    "submax.policies.epsilon_greedy",
    "submax.server.run",
)
"""What servers and processes that open bandits import."""


def fork_context() -> Any:
    """Return a context of multiprocessing whose processes begin with the library imported.

    The process that they are forked from is started for the first of them.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    return context


FORKED = """
import atexit, os

os.dup2(complaints.fileno(), 2)
complaints.close()
os.environ.clear()
os.environ.update(environment)
from submax.__main__ import main

try:
    main(arguments)
finally:
    atexit._run_exitfuncs()
"""


class ForkedCommand:
    """A command of submax like one of ``subprocess.Popen``, in a process that is forked.

    It is forked from a process that has imported the library, so that a server starts in a tenth of
    the time. The process that runs the command is no child of this one.
    """

    def __init__(self, arguments: list[str], environment: dict[str, str]):
        context = fork_context()
        said, complaints = context.Pipe(duplex=False)
        given = {"arguments": arguments, "environment": environment, "complaints": complaints}
        self._process = context.Process(target=exec, args=(FORKED, given))
        self._process.start()
        complaints.close()
        self.stderr = os.fdopen(os.dup(said.fileno()), encoding="utf-8")
        said.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()


def start_command(*arguments: Any, fresh: bool = False, **variables: str) -> Any:
    """Start a command of submax, with further variables in its environment.

    If it is ``fresh``, or if processes cannot be forked here, it is started as people start it.
    """
    words, environment = [str(one) for one in arguments], {**os.environ, **variables}
    if not fresh and "forkserver" in multiprocessing.get_all_start_methods():
        return ForkedCommand(words, environment)
    command = [sys.executable, "-m", "submax", *words]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
