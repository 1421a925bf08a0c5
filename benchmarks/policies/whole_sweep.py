"""Wall time and memory of the paper's whole experiment on Bernoulli arms.

Runs ``submax reproduce bernoulli --out DIR --jobs 2`` in a temporary directory and measures the
memory of all its processes together several times a second.
"""

import argparse
import resource
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, sleep
from typing import NamedTuple

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring.claim import Claim, print_claims
from measuring.process_tree import memory, readable

SUBMAX = (sys.executable, "-m", "submax")
JOBS = 2
MINUTES_LIMIT = 3.0
GIGABYTES_LIMIT = 1.5
PAUSE = 0.1
"""Seconds between two measurements of the memory."""


class Run(NamedTuple):
    """The result of a command.

    ``peak_bytes`` is the peak memory of all its processes together, or of the largest process if
    ``all_together`` is False.
    """

    status: int
    seconds: float
    processor_seconds: float
    peak_bytes: int
    all_together: bool


def measure(program: Sequence[str] = SUBMAX) -> list[Claim]:
    """Run the sweep and return the claims; ``program`` is the command that runs submax."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "bernoulli")
        command = [*program, "reproduce", "bernoulli", "--out", out, "--jobs", str(JOBS)]
        print("running (some minutes):", shlex.join(command), flush=True)
        run = watch(command)
    if run.status:
        limit = f"at most {MINUTES_LIMIT:g} minutes and {GIGABYTES_LIMIT:g} GB"
        return [Claim("whole Bernoulli sweep", f"ended with status {run.status}", limit, False)]
    # If this is far less than jobs times wall time, the machine was busy with other work.
    print(f"its processes used {run.processor_seconds / 60:.2f} minutes of processor time together")
    minutes, gigabytes = run.seconds / 60, run.peak_bytes / 1e9
    whose = "all processes" if run.all_together else "largest process, no /proc here"
    return [
        Claim(
            f"whole Bernoulli sweep, {JOBS} jobs, minutes",
            f"{minutes:.2f}",
            f"at most {MINUTES_LIMIT:g}",
            minutes <= MINUTES_LIMIT,
        ),
        Claim(
            f"whole Bernoulli sweep, peak memory in GB ({whose})",
            f"{gigabytes:.2f}",
            f"at most {GIGABYTES_LIMIT:g}",
            gigabytes <= GIGABYTES_LIMIT if run.all_together else None,
        ),
    ]


def watch(command: Sequence[str]) -> Run:
    """Run a command to its end; its output is discarded, its errors are printed."""
    peak, begin, processor_begin = 0, perf_counter(), _processor_seconds()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            if readable():
                peak = max(peak, memory(process.pid))
            sleep(PAUSE)
    return Run(
        status=process.returncode,
        seconds=perf_counter() - begin,
        processor_seconds=_processor_seconds() - processor_begin,
        peak_bytes=peak if readable() else _largest_child(),
        all_together=readable(),
    )


def _processor_seconds() -> float:
    """The processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _largest_child() -> int:
    size = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--program", help="command to run instead of submax", type=shlex.split, default=SUBMAX
    )
    print_claims(measure(parser.parse_args().program))
