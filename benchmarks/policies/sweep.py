"""Wall time and memory of the paper's whole experiment on Bernoulli arms.

Runs ``submax reproduce bernoulli --out DIR --jobs 2`` in a temporary directory and measures the
memory of all its processes together several times a second (Linux).
"""

import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import Claim, at_most, family, megabytes, print_claims

JOBS = 2
MINUTES_LIMIT, MEGABYTES_LIMIT = 3.0, 1500.0
PAUSE = 0.1
"""Seconds between two measurements of the memory."""


def measure() -> list[Claim]:
    """Run the sweep and return the claims."""
    print(f"running submax reproduce bernoulli --jobs {JOBS} (some minutes)", flush=True)
    peak, begin = 0.0, perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "submax", "reproduce", "bernoulli"]
        options = ["--out", folder, "--jobs", str(JOBS)]
        with subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL) as process:
            while process.poll() is None:
                peak = max(peak, megabytes(family(process.pid)))
                sleep(PAUSE)
    if process.returncode:
        raise RuntimeError(f"the sweep ended with status {process.returncode}")
    minutes = (perf_counter() - begin) / 60
    # If this is far less than jobs times wall time, the machine was busy with other work.
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"its processes used {(used.ru_utime + used.ru_stime) / 60:.2f} minutes of CPU time")
    return [
        at_most(f"whole Bernoulli sweep, {JOBS} jobs", minutes, MINUTES_LIMIT, "minutes"),
        at_most("the same, peak memory of all processes", peak, MEGABYTES_LIMIT, "MB"),
    ]


if __name__ == "__main__":
    print_claims(measure())
