"""The size on disk of submax with each of its extras, and the time of importing it.

A wheel is built from this checkout and installed by pip into new environments, so that the network
or a cache of pip is needed. ``--extras ,plots,logs`` measures the base and these extras only;
``--page FILE`` writes the tables between the markers of a page.
"""

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from rich.markup import escape

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring.claim import Claim, print_claims, print_table

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = ("dev", "docs", "bench", "all")
"""Extras that are for the work on submax itself, and the one that joins others."""
MEGABYTE = 1e6
LIMIT_MEGABYTES, LIMIT_SECONDS = 200.0, 0.1
ROUNDS = 15
"""How often each import is timed; the imports take turns, and the fastest round counts."""
IMPORTS = {
    "nothing": "pass",
    "`import numpy`": "import numpy",
    "`import submax`": "import submax",
    "`from submax.client import Client`": "from submax.client import Client",
    "`import submax; submax.Bandit`": "import submax; submax.Bandit",
}
BASE = ""
SIZES, TIMES = "sizes", "times"
"""The markers of the tables in a page: ``<!-- sizes -->`` before and after."""


class Installed(NamedTuple):
    """What pip installed: bytes on disk, the number of packages, and the largest of them.

    ``compiled`` are the bytes of compiled modules, which ``pip install --no-compile`` leaves out.
    """

    size: int
    compiled: int
    packages: int
    largest: list[tuple[str, int]]


class Spent(NamedTuple):
    """Seconds of a process: by the clock, and of the processor."""

    clock: float
    processor: float


def measure(extras: Sequence[str] | None = None, page: Path | None = None) -> list[Claim]:
    """Install and time everything, print the tables, and return the claims."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        sizes, times = {}, {}
        for extra in all_extras() if extras is None else extras:
            python = new_environment(Path(folder) / f"with-{extra or 'nothing'}")
            install(python, wheel, extra)
            sizes[extra] = installed_in(python)
            if extra == BASE:
                times = import_times(python)
    tables = {SIZES: size_rows(sizes), TIMES: time_rows(times)}
    for name, (head, *rows) in tables.items():
        print_table(name, head, [[escape(cell) for cell in row] for row in rows])
    if page is not None:
        write_page(page, tables)
    return claims_of(sizes[BASE], times)


def all_extras() -> list[str]:
    """Return the base and all extras for users."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [BASE, *(one for one in project["optional-dependencies"] if one not in LEFT_OUT)]


def build(folder: Path) -> Path:
    """Build the wheel of this checkout."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def new_environment(folder: Path) -> Path:
    """Make an environment without any package, not even pip; return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


def install(python: Path, wheel: Path, extra: str) -> None:
    """Install the wheel with an extra, and compile it, as pip does."""
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", wanted]
    subprocess.run(command, check=True, env=_environment())


def installed_in(python: Path) -> Installed:
    """Return the bytes that all files take on disk, and the largest packages."""
    (folder,) = python.parents[1].glob("lib/python*/site-packages")
    sizes = {
        one.name: sum(_bytes(path) for path in [one, *one.rglob("*")]) for one in folder.iterdir()
    }
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:4]
    compiled = sum(map(_bytes, folder.rglob("__pycache__/*")))
    packages = len(list(folder.glob("*.dist-info")))
    return Installed(sum(sizes.values()), compiled, packages, largest)


def import_times(python: Path) -> dict[str, Spent]:
    """Return the fastest of several rounds for each import."""
    found: dict[str, list[Spent]] = {name: [] for name in IMPORTS}
    for _ in range(ROUNDS + 1):
        for name, code in IMPORTS.items():
            found[name].append(_timed(python, code))
    # The first round reads files from disk that are in memory afterwards.
    return {name: Spent(*map(min, zip(*spent[1:], strict=True))) for name, spent in found.items()}


def size_rows(sizes: dict[str, Installed]) -> list[tuple[str, ...]]:
    """Return the head and the rows of the table of sizes."""
    base = sizes[BASE].size
    rows = [("installed", "MB", "not compiled", "more than the base", "packages", "largest, MB")]
    for extra, found in sizes.items():
        largest = ", ".join(f"{name} {size / MEGABYTE:.0f}" for name, size in found.largest)
        name = f'`"submax[{extra}]"`' if extra else "`submax`"
        numbers = (found.size, found.size - found.compiled, found.size - base)
        megabytes = [f"{number / MEGABYTE:.0f}" for number in numbers]
        rows.append((name, *megabytes, str(found.packages), largest))
    return rows


def time_rows(times: dict[str, Spent]) -> list[tuple[str, ...]]:
    """Return the head and the rows of the table of times."""
    empty = times["nothing"]
    numpy = times["`import numpy`"].processor - empty.processor
    rows = [("what a new process does", "ms by the clock", "ms of a core", "of `import numpy`")]
    for name, spent in times.items():
        ratio = (spent.processor - empty.processor) / numpy
        compared = "" if spent is empty else f"{ratio:.2f}"
        rows.append((name, f"{spent.clock * 1e3:.0f}", f"{spent.processor * 1e3:.0f}", compared))
    return rows


def claims_of(base: Installed, times: dict[str, Spent]) -> list[Claim]:
    """Return the two claims: about the size of the base, and the time of importing it."""
    megabytes = base.size / MEGABYTE
    seconds = times["`import submax`"].clock - times["nothing"].clock
    return [
        Claim(
            "size of the base on disk",
            f"{megabytes:.0f} MB",
            f"{LIMIT_MEGABYTES:.0f} MB",
            megabytes <= LIMIT_MEGABYTES,
        ),
        Claim(
            "import submax, beyond starting Python",
            f"{seconds:.3f} s",
            f"{LIMIT_SECONDS} s",
            seconds <= LIMIT_SECONDS,
        ),
    ]


def write_page(path: Path, tables: dict[str, list[tuple[str, ...]]]) -> None:
    """Write the tables, and where and when they were measured, between the page's markers."""
    text = path.read_text(encoding="utf-8")
    system = f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores"
    made = f"Measured on {datetime.now(UTC):%Y-%m-%d} with Python {platform.python_version()}, "
    parts = {name: _markdown(rows) for name, rows in tables.items()}
    for name, part in {**parts, "measured": f"{made}{system}."}.items():
        marker = f"<!-- {name} -->"
        text = re.sub(
            f"{marker}.*{marker}",
            lambda _, part=part, marker=marker: f"{marker}\n\n{part}\n\n{marker}",
            text,
            flags=re.DOTALL,
        )
    path.write_text(text, encoding="utf-8")


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *others = rows
    return "\n".join(
        f"| {' | '.join(row)} |" for row in (head, ["---", *["---:"] * (len(head) - 1)], *others)
    )


def _timed(python: Path, code: str) -> Spent:
    begin = time.perf_counter()
    process = subprocess.Popen([str(python), "-c", code], env=_environment())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{code!r} ended with the status {process.returncode}")
    return Spent(time.perf_counter() - begin, usage.ru_utime + usage.ru_stime)


def _environment() -> dict[str, str]:
    """Return the variables of this process without those that point to other modules."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if name not in hidden}


def _bytes(path: Path) -> int:
    return path.lstat().st_blocks * 512


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extras", help="extras, separated by commas; the base is always measured")
    parser.add_argument("--page", type=Path, help="write the tables into this page")
    given = parser.parse_args()
    extras = None if given.extras is None else list(dict.fromkeys([BASE, *given.extras.split(",")]))
    claims = measure(extras, given.page)
    print_claims(claims)
    return int(any(claim.holds is False for claim in claims))


if __name__ == "__main__":
    sys.exit(main())
