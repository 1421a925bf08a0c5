"""The process that is killed, and the other end of its pipes.

A command is answered after everything it asks for is durable. Commands are worked on by some
threads at the same time, as requests of a server are. ``at`` in a command sets the clock of store
and bandit.
"""

import ctypes
import gc
import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from threading import Lock

from submax.bandit.durable import open_bandit
from submax.testing import ManualClock

THREADS = 4
ANSWER_SECONDS = 120.0
"""A command that is not answered within this time has hung; the longest is a version from scratch
after the log was read anew."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MALLOC_FIELDS = (
    *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
    *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
)


class WorkerProcess:
    """A process that works on commands; ``open`` has those without an answer, by number."""

    def __init__(self, place, name):
        self.open = {}
        spawning = get_context("spawn")
        commands, self._commands = spawning.Pipe(duplex=False)
        self._answers, answers = spawning.Pipe(duplex=False)
        self._process = spawning.Process(
            target=work, args=(place, name, commands, answers), daemon=True
        )
        self._process.start()
        commands.close()
        answers.close()

    @property
    def pid(self):
        return self._process.pid

    def send(self, command):
        """Send a command; its answer comes later."""
        self.open[command["number"]] = command
        self._commands.send(command)

    def answer(self):
        """Wait for the next answer; return the command and the answer."""
        assert self._answers.poll(ANSWER_SECONDS), "the worker hangs"
        number, answer = self._answers.recv()
        return self.open.pop(number), answer

    def kill(self):
        """End the process without warning; return the answers that it still gave."""
        self._process.kill()
        return self._end()

    def close(self):
        """Let the process finish its commands and close the bandit; return its last answers."""
        answers = self._end()
        assert self._process.exitcode == 0
        assert not self.open, "the worker closed, and has not answered all commands"
        return answers

    def _end(self):
        self._commands.close()
        answers = []
        # An answer may have been cut off.
        with suppress(EOFError, OSError):
            while True:
                answers.append(self.answer())
        self._process.join()
        self._answers.close()
        return answers


def work(place, name, commands, answers):
    """Do what the commands say until there are no more, then close the bandit."""
    warnings.simplefilter("ignore")
    clock, sending = ManualClock(), Lock()
    bandit = open_bandit(place, name=name, background=False, clock=clock)

    def handle(command):
        clock.now = command["at"]
        try:
            answer = OPERATIONS[command["do"]](bandit, command)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        with sending:
            answers.send((command["number"], answer))

    with ThreadPoolExecutor(THREADS) as pool, suppress(EOFError):
        while True:
            pool.submit(handle, commands.recv())
    bandit.close()


def context(number):
    """The context of a decision, which depends on its number alone."""
    return {"x": number * 0.6180339887 % 1.0, "y": number * 0.7548776662 % 1.0}


def decide(bandit, command):
    numbers = range(command["first"], command["first"] + command["count"])
    made = bandit.decide_many(
        [{"id": f"{number:012d}", "context": context(number)} for number in numbers]
    )
    return {
        "actions": [one.action for one in made],
        "propensities": [one.propensity for one in made],
    }


def reward(bandit, command):
    rewards = [
        {"id": f"{number:012d}", "value": value, "key": key}
        for number, key, value in command["rewards"]
    ]
    return {"statuses": [one.status for one in bandit.reward_many(rewards)]}


def refit(bandit, command):
    return {"version": bandit.refit().version}


def change(bandit, command):
    getattr(bandit, command["verb"])(command["choice"])
    return {}


def memory(bandit, command):
    """The memory of this process in three numbers.

    ``resident`` is the number of bytes that the process takes from the system, with the code of
    libraries and with memory that was freed and not given back. ``allocated`` is the number of
    bytes in use that came from the C library, such as those of arrays; 0 if the library cannot
    tell. ``objects`` is the number of small blocks in use that came from Python's own allocator.
    """
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES
    gc.collect()
    library, allocated = ctypes.CDLL(None), 0
    if hasattr(library, "mallinfo2"):
        library.mallinfo2.restype = MallocInfo
        found = library.mallinfo2()
        allocated = found.uordblks + found.hblkhd
    return {"resident": resident, "allocated": allocated, "objects": sys.getallocatedblocks()}


class MallocInfo(ctypes.Structure):
    """The answer of ``mallinfo2`` of the GNU C library: see its manual page."""

    _fields_ = [(name, ctypes.c_size_t) for name in MALLOC_FIELDS]


OPERATIONS = {one.__name__: one for one in (decide, reward, refit, change, memory)}
