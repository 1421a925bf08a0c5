"""What benchmarks share: claims, processor time, costs of processes, and other libraries."""

import csv
import os
import platform
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import process_time
from types import FrameType
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from submax import __version__

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
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores {platform.machine()}, "
        f"{platform.system()}, Python {platform.python_version()}, submax {__version__}"
    )


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

SINGLE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
"""The environment of a process whose linear algebra uses a single core."""
os.environ.update(SINGLE_THREAD)  # For all processes that are started, such as those of run.py.


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
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        fields = _stat(int(entry.name))
        if fields:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = set(), [process]
    while waiting:
        member = waiting.pop()
        found.add(member)
        waiting += children.get(member, [])
    return found


def cpu_seconds(processes: Iterable[int]) -> float:
    """The processor time of processes so far, on Linux; of one that has ended it is 0."""
    ticks = sum(sum(map(int, _stat(process)[11:13])) for process in processes)
    return ticks / os.sysconf("SC_CLK_TCK")


def megabytes(processes: Iterable[int]) -> float:
    """The memory that processes have now, on Linux; what they share counts once."""
    return sum(map(_kilobytes, processes)) / 1000


def _stat(process: int) -> list[str]:
    """The fields behind the name of the program, beginning with the state; none if it has ended."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return []
    # The name can contain spaces and brackets.
    return text.rpartition(")")[2].split()


def _kilobytes(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0  # The process has ended in the meantime.
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


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
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return kept | SINGLE_THREAD


def last_line(text: str) -> str:
    """The last line with text, such as the message of a traceback."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it failed without a message"
