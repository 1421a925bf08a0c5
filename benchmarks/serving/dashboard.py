"""The pages of a server: how long they take with everything that is ever kept, and what they cost.

Times depend on the machine and on what else runs on it. The ratio of decisions a second with and
without open pages is measured in one run, in turns.
"""

import os

# Set before numpy is imported, because the benchmark measures a single core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
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
from serving.server_process import ServerProcess

BANDITS, ARMS = 50, 1000
PAGES = ("overview", "arms", "contexts", "decisions", "version-history", "health", "settings")
REPEATS = 5
LIMIT_SECONDS = 0.3
"""The time in which every page is to be answered."""
DASHBOARDS, REFRESH_SECONDS = 5, 5.0
"""Pages that are open, and how often each loads itself again, as in a browser."""
CONNECTIONS, SECONDS, TURNS = 16, 6.0, 3
"""The load, and how often it is measured with pages and without."""
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
    """Decisions a second with five open pages, as a share of those without, in turns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        submax.open(path, name="plain", actions=[f"arm-{n}" for n in range(10)]).close()
        with ServerProcess(path) as server:
            server.load(CONNECTIONS, SECONDS, "/bandits/plain/decide", {})
            rates: dict[bool, list[float]] = {False: [], True: []}
            for turn in range(2 * TURNS):
                opened = turn % 2 == 1
                with _dashboards(server.port, DASHBOARDS if opened else 0):
                    load = server.load(CONNECTIONS, SECONDS, "/bandits/plain/decide", {})
                rates[opened].append(load.rate)
    without, opened_rate = (float(np.median(rates[opened])) for opened in (False, True))
    share = opened_rate / without
    rows = [("without", f"{without:.0f}"), ("with five open pages", f"{opened_rate:.0f}")]
    print_table("Durable decisions a second, 16 connections", ("pages", "a second"), rows)
    return [
        Claim(
            "decisions with five open pages, of those without",
            f"{share:.1%}",
            "95 %",
            share >= 0.95,
        )
    ]


@contextmanager
def _dashboards(port: int, count: int) -> Iterator[None]:
    """Pages that load themselves again from time to time, each in a thread."""
    ended = Event()

    def look(page: str, begin: float) -> None:
        ended.wait(begin)
        while not ended.is_set():
            _page(port, f"/bandits/plain/{page}")
            ended.wait(REFRESH_SECONDS)

    pages = PAGES[:1] * (count - 3) + ("arms", "health", "contexts") if count else ()
    threads = [
        Thread(target=look, args=(page, number * REFRESH_SECONDS / count), daemon=True)
        for number, page in enumerate(pages)
    ]
    for thread in threads:
        thread.start()
    yield
    ended.set()
    for thread in threads:
        thread.join(10)


if __name__ == "__main__":
    print_claims(measure())
