"""What benchmarks share: claims, processor time, costs of processes, and other libraries."""

import csv
import os
import platform
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from types import FrameType
from typing import NamedTuple, TypeVar

from rich.console import Console
from rich.table import Table

from submax import __version__
from submax.core.processes import prefer_single_thread

# Claims -------------------------------------------------------------------------------------------

WORDS = {True: "[green]yes[/green]", False: "[red]no[/red]", None: "[yellow]not measured[/yellow]"}


class Claim(NamedTuple):
    """One claim; ``holds`` is None if it could not be measured on this machine."""

    what: str
    measured: str
    limit: str
    holds: bool | None


def at_most(
    what: str, measured: float | None, limit: float, unit: str = "", sign: str = "≤"
) -> Claim:
    """Claim that a number is not above a limit; None stands for a number that is not known."""
    holds = None if measured is None else measured <= limit if sign == "≤" else measured >= limit
    return Claim(what, _text(measured, unit), f"{sign} {_text(limit, unit)}", holds)


def at_least(what: str, measured: float | None, limit: float, unit: str = "") -> Claim:
    """Claim that a number is not below a limit."""
    return at_most(what, measured, limit, unit, "≥")


def _text(number: float | None, unit: str) -> str:
    if number is None:
        return "-"
    text = f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"
    return f"{text} {unit}".rstrip()


def print_claims(claims: Sequence[Claim]) -> None:
    """Print all claims in one table; nothing if there are none."""
    rows = [(claim.what, claim.measured, claim.limit, WORDS[claim.holds]) for claim in claims]
    if rows:
        print_table("Claims", ("claim", "measured", "limit", "holds"), rows)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table whose first column is text and whose other columns are numbers."""
    table = Table(title=title)
    for position, column in enumerate(columns):
        table.add_column(column, justify="right" if position else "left")
    for row in rows:
        table.add_row(*row)
    # If the output is not a terminal, rich would wrap the table at 80 characters.
    Console(width=max(Console().width, 110)).print(table)


def when_and_where() -> str:
    """Return the date, the machine and the versions, in words that a page can repeat."""
    machine = f"{os.cpu_count()} cores {platform.machine()}, {platform.system()}"
    versions = f"Python {platform.python_version()}, submax {__version__}"
    return f"{datetime.now(UTC):%Y-%m-%d}, {machine}, {versions}"


def read_rows(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a CSV of results; one that does not exist is begun with its header."""
    if not path.exists():
        path.write_text(",".join(columns) + "\n", encoding="utf-8")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def append_rows(path: Path, rows: Iterable[Sequence[object]]) -> None:
    """Append what is finished, so an interrupted run goes on with the same command."""
    with path.open("a", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


# Time and memory ----------------------------------------------------------------------------------

prefer_single_thread()  # For all processes that are started, such as those of run.py.
Answer = TypeVar("Answer")


def alone(work: Callable[..., Answer], *arguments: object) -> Answer:
    """Call ``work`` in a new process, which has the memory and the packages of nothing else."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def seconds(work: Callable[[], object]) -> float:
    """The processor time of one call of ``work``, in seconds."""
    begin = process_time()
    work()
    return process_time() - begin


def peak_memory() -> float:
    """The most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def family(process: int) -> set[int]:
    """The process and all its descendants, on Linux."""
    running = [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]
    parents = {one: int(fields[1]) for one in running if (fields := _stat(one))}
    found, before = {process}, set[int]()
    while found != before:
        before, found = found, found | {one for one, parent in parents.items() if parent in found}
    return found


def cpu_seconds(process: int) -> float:
    """The processor time of a process so far, on Linux; 0 if it has ended."""
    return sum(map(int, _stat(process)[11:13])) / os.sysconf("SC_CLK_TCK")


def megabytes(processes: Iterable[int]) -> float:
    """The memory that processes have now, on Linux; what they share counts once."""
    lines = (line for one in processes for line in _text_of(one, "smaps_rollup").splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1000


def _stat(process: int) -> list[str]:
    """The fields behind the name of the program, beginning with the state; none if it has ended."""
    # The name can contain spaces and brackets.
    return _text_of(process, "stat").rpartition(")")[2].split()


def _text_of(process: int, file: str) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/{file}").read_text(encoding="utf-8")
    return ""  # The process has ended in the meantime.


@contextmanager
def files_entered() -> Iterator[set[str]]:
    """Yield the files of submax whose functions are called, also in threads that are started."""
    entered: set[str] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and "/submax/" in frame.f_code.co_filename:
            entered.add(frame.f_code.co_filename)

    threading.setprofile(watch)
    sys.setprofile(watch)
    yield entered
    sys.setprofile(None)
    threading.setprofile(None)


# Other libraries ----------------------------------------------------------------------------------

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parent / ".venv-bench"
PEERS = {
    "mabwiser": ["mabwiser>=2.7"],
    "vowpalwabbit": ["vowpalwabbit>=9.10", "numpy"],
    "gittins": ["gittins>=2.0.1", "numpy"],
    "contextualbandits": ["contextualbandits>=0.3.30"],
    "river": ["river>=0.21", "numpy"],
    # The last one, of 2020, needs functions that scipy and pandas no longer have.
    "smpybandits": ["SMPyBandits>=0.9.7", "scipy<1.14", "numpy<2", "pandas<3"],
    # Later ones need an old scikit-learn; the newest torch would bring several GB of CUDA.
    "obp": ["obp==0.4.1", "torch==2.13.0"],
}
"""Other libraries and what they need; each gets an environment of its own.

Their dependencies conflict with each other and with ours.
"""
TIMEOUT = 600
"""Seconds after which an installation is stopped."""


class PeerUnavailableError(Exception):
    """A peer does not install on this machine; the message is one line with the reason."""


def install(peer: str) -> Path:
    """The Python of the peer's virtual environment, which is created if necessary."""
    folder = ENVIRONMENTS / peer
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    # This file is written last, so that an interrupted installation is repeated.
    done, wanted = folder / "installed.txt", repr(PEERS[peer])
    if not done.exists() or done.read_text(encoding="utf-8") != wanted:
        print(f"installing {peer} under {ENVIRONMENTS.name}/ ...", flush=True)
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", *PEERS[peer]],
        ):
            given = {"env": peer_environment(), "timeout": TIMEOUT, "check": True}
            try:
                subprocess.run(command, capture_output=True, text=True, **given)
            except subprocess.CalledProcessError as error:
                raise PeerUnavailableError(last_line(error.stderr)) from error
            except (OSError, subprocess.TimeoutExpired) as error:
                raise PeerUnavailableError(str(error)) from error
        done.write_text(wanted, encoding="utf-8")
    return python


def peer_environment() -> dict[str, str]:
    """Our environment for a peer: our own packages must not shadow those of the peer."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


def last_line(text: str) -> str:
    """The last line with text, such as the message of a traceback."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it failed without a message"
