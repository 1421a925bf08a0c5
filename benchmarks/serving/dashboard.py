"""The pages of a server: how long they take with everything that is ever kept, and what they cost.

Times depend on the machine and on what else runs on it. What open pages cost decisions is measured
in one run, in pairs of loads: as decisions a second, which needs a machine that does nothing else,
and as the processor time that the server needs for the pages, which depends less on it.
"""

import os

# Set before numpy is imported, because the benchmark measures a single core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import numpy as np

import submax

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from load.full_rollups import fill
from measuring.claim import Claim, print_claims, print_table
from measuring.process_tree import readable
from serving.server_process import Served, ServerProcess

BANDITS, ARMS = 50, 1000
PAGES = ("overview", "arms", "contexts", "decisions", "version-history", "health", "settings")
REPEATS = 5
LIMIT_SECONDS = 0.3
"""The time in which every page is to be answered."""
OPEN_PAGES = ("overview", "overview", "arms", "health", "contexts")
"""Pages that are open."""
REFRESH_SECONDS = 5.0
"""How often each open page loads itself again, as in a browser."""
CONNECTIONS, SECONDS, PAIRS = 16, 5.0, 12
"""The load, and how often it is measured with pages and directly before or after without."""
HTML = {"Accept": "text/html", "HX-Request": "true"}


def measure() -> list[Claim]:
    """Print all numbers and return the claims."""
    # What a server costs is read from /proc.
    return full_pages() + (with_open_pages() if readable() else [])


def full_pages() -> list[Claim]:
    """The time of each page of 50 bandits with 1,000 arms and a year of minutes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "full.db"
        fill(path, BANDITS, ARMS)
        with ServerProcess(path) as server:
            # Every ledger is read once after the start.
            time.sleep(10.0)
            rows = [_timed(server, "home", "/")]
            rows += [_timed(server, page, f"/bandits/b07/{page}") for page in PAGES]
    shown = [
        (name, f"{1e3 * seconds:.0f}", f"{1e3 * cpu:.0f}", f"{size / 1e3:.0f}")
        for name, seconds, cpu, size in rows
    ]
    columns = ("page", "median, ms", "processor time, ms", "kB")
    print_table(f"{BANDITS} bandits with {ARMS} arms and a year of minutes", columns, shown)
    slowest = max(seconds for _, seconds, _, _ in rows)
    limit = f"at most {LIMIT_SECONDS:g} s"
    found = f"{slowest:.2f} s"
    return [Claim("the slowest page", found, limit, slowest <= LIMIT_SECONDS)]


def _timed(server: ServerProcess, name: str, path: str) -> tuple[str, float, float, int]:
    """The median time of a page, the processor time of the server for one, and its bytes."""
    size = len(_page(server.port, path))
    before, times = server.cpu, []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        _page(server.port, path)
        times.append(time.perf_counter() - begin)
    return name, float(np.median(times)), (server.cpu - before) / REPEATS, size


def _page(port: int, path: str) -> bytes:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=HTML)
    with urllib.request.urlopen(request, timeout=60) as answer:
        content: bytes = answer.read()
    return content


def with_open_pages() -> list[Claim]:
    """Decisions a second with five open pages, as a share of those without, in pairs of loads."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        submax.open(path, name="plain", actions=[f"arm-{n}" for n in range(10)]).close()
        with ServerProcess(path) as server:
            server.load(CONNECTIONS, SECONDS, "/bandits/plain/decide", {})
            pairs = [_pair(server, opened_first=number % 2 == 1) for number in range(PAIRS)]
            # Directly, because the difference between two loads is mostly noise.
            timed = [_timed(server, page, f"/bandits/plain/{page}") for page in OPEN_PAGES]
    rows = [
        (
            name,
            f"{np.mean([one.rate for one in loads]):.0f}",
            f"{np.mean([one.p99_ms for one in loads]):.1f}",
            f"{np.mean([one.cpu_us for one in loads]):.0f}",
        )
        for name, loads in zip(
            ("without", "with five open pages"), zip(*pairs, strict=True), strict=True
        )
    ]
    columns = ("pages", "a second", "p99, ms", "processor time of each, µs")
    print_table("Durable decisions, 16 connections", columns, rows)
    share, error = _share(pairs)
    # A core that is busy with decisions loses the time that pages take.
    cost = sum(one[2] for one in timed) / REFRESH_SECONDS
    what = f"decisions a second with five open pages, of those without, {PAIRS} pairs"
    return [
        Claim(what, f"{share:.1%} ± {error:.1%}", "at least 95 %", share >= 0.95),
        Claim("five open pages, share of one core", f"{cost:.1%}", "at most 3 %", cost <= 0.03),
    ]


def _pair(server: ServerProcess, *, opened_first: bool) -> tuple[Served, Served]:
    """A load without pages, and one with five open pages, whichever comes first."""
    found = {}
    for opened in (opened_first, not opened_first):
        with _dashboards(server.port, opened=opened):
            found[opened] = server.load(CONNECTIONS, SECONDS, "/bandits/plain/decide", {})
    return found[False], found[True]


def _share(pairs: Sequence[tuple[Served, Served]]) -> tuple[float, float]:
    """The geometric mean of the ratios of the rates with pages and without; its standard error."""
    ratios = np.log([opened.rate / without.rate for without, opened in pairs])
    share = float(np.exp(ratios.mean()))
    return share, share * float(ratios.std(ddof=1)) / len(ratios) ** 0.5


@contextmanager
def _dashboards(port: int, *, opened: bool) -> Iterator[None]:
    """Pages that load themselves again from time to time, each in a thread."""
    ended = Event()

    def look(page: str, begin: float) -> None:
        ended.wait(begin)
        while not ended.is_set():
            _page(port, f"/bandits/plain/{page}")
            ended.wait(REFRESH_SECONDS)

    threads = [
        Thread(target=look, args=(page, number * REFRESH_SECONDS / len(OPEN_PAGES)), daemon=True)
        for number, page in enumerate(OPEN_PAGES if opened else ())
    ]
    for thread in threads:
        thread.start()
    yield
    ended.set()
    for thread in threads:
        thread.join(10)


if __name__ == "__main__":
    print_claims(measure())
