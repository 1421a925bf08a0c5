"""The bake-off on twelve tables that no earlier result used, with non-linear peers.

    apt-get download r-cran-mlbench r-cran-kernlab r-cran-caret
    for package in r-cran-*.deb; do dpkg-deb -x $package packages; done
    pip install rdata
    python benchmarks/bakeoff/new_tables.py make --packages packages
    python benchmarks/bakeoff/new_tables.py tune --processes 16
    python benchmarks/bakeoff/new_tables.py play --processes 16
    python benchmarks/bakeoff/new_tables.py print

``make`` reads the tables from the R packages of Debian (mlbench: Leisch and Dimitriadou, GPL-2,
with data of the UCI repository; kernlab: Karatzoglou et al., GPL-2; caret: Kuhn et al., GPL-2 or
later) and writes them as text into ``results/new-tables``, which git ignores: the data are not part
of this project. Left out are tables, or their twins, on which something was chosen or reported
before (Satellite, LetterRecognition, DNA, spam, income, BreastCancer), tables of fewer than 200
rows, and tables of descriptors or codes with hundreds of columns (cox2, dhfr, mdrr, ticdata).

Every method takes 2,000 decisions in batches of 100. A table with fewer rows is met several times,
each time in another order. ``tune`` chooses the parameters of every peer on the ten tables for
choosing: a grid, and if its best value lies on the edge, two more values beyond the edge. ``play``
runs each method with ten seeds on the new tables. ``print`` shows lost rewards, ratios to the best
peer of each table, chosen in hindsight, and t intervals over the tables. The policies of submax are
played by the same loop as the peers, one replica a seed.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bakeoff.bakeoff_methods import (
    CONTEXTUALBANDITS,
    MABWISER,
    SUBMAX,
    TABLES,
    TUNING_SEED,
    Method,
)
from bakeoff.bakeoff_peers import Cell, Pool, data_folder, find_pythons, read_results

REGIME = "repeated"
REFERENCE = "reference"
"""Our own short implementations of published methods, peers/reference_bakeoff.py."""
FOLDER = Path("results/new-tables")
SEEDS = range(1000, 1010)
MOST_ROWS = 5000
"""A larger table is represented by a random sample of this many rows."""
DEFAULT = "rcp-adaptive"


class Source(NamedTuple):
    """Where a table is: the package, the file, its object, and the column of classes."""

    package: str
    file: str
    label: str = "Class"
    dropped: tuple[str, ...] = ()


NEW_TABLES = {
    "cells": Source("caret", "segmentationData.RData", dropped=("Cell", "Case")),
    "credit": Source("caret", "GermanCredit.RData"),
    "glass": Source("mlbench", "Glass.rda", "Type"),
    "ionosphere": Source("mlbench", "Ionosphere.rda"),
    "musk": Source("kernlab", "musk.rda"),
    "pima": Source("mlbench", "PimaIndiansDiabetes.rda", "diabetes"),
    "shuttle": Source("mlbench", "Shuttle.rda"),
    "sonar": Source("mlbench", "Sonar.rda"),
    "soybean": Source("mlbench", "Soybean.rda"),
    "vehicle": Source("mlbench", "Vehicle.rda"),
    "votes": Source("mlbench", "HouseVotes84.rda"),
    "vowel": Source("mlbench", "Vowel.rda"),
}


class Tuned(NamedTuple):
    """A method whose ``parameter`` is tuned along ``values``, for each of the ``options``.

    The first round tries the values from ``first`` to ``last``; the second goes beyond an edge.
    """

    peer: str
    options: Sequence[Mapping[str, Any]]
    parameter: str
    values: Sequence[float]
    first: int
    last: int

    def with_value(self, option: int, position: int) -> Method:
        """Return the method with one of its options and values.

        A parameter of a part is named by its path, such as ``base_parameters.max_iter``.
        """
        settings = {**self.options[option]}
        part, _, name = self.parameter.rpartition(".")
        if part:
            settings[part] = {**settings.get(part, {}), name: self.values[position]}
        else:
            settings[name] = self.values[position]
        return Method(self.peer, settings)


def _trees(base: str, **fixed: Any) -> list[dict[str, Any]]:
    """Return both explorations of contextualbandits with this base."""
    given = {"base": base, "base_parameters": fixed}
    return [
        {"policy": "SoftmaxExplorer", **given},
        {"policy": "EpsilonGreedy", "explore_prob": 0.05, **given},
    ]


def _kernels() -> list[dict[str, Any]]:
    return [
        {"method": "kernel-ucb", "ridge": ridge, "scale": scale}
        for ridge in (0.1, 1.0)
        for scale in (0.5, 1.0)
    ]


NEAREST = [{"policy": "EpsilonGreedy", "epsilon": 0.02}, {"policy": "UCB1", "alpha": 0.1}]
WIDTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
PEERS: dict[str, Tuned] = {
    "linucb": Tuned(SUBMAX, [{"kind": "linucb"}], "alpha", WIDTHS, 2, 5),
    "linear-thompson": Tuned(SUBMAX, [{"kind": "linear-thompson"}], "width", WIDTHS, 2, 5),
    "mabwiser-tree": Tuned(
        MABWISER,
        [{"policy": "EpsilonGreedy", "near": "TreeBandit"}],
        *("epsilon", (0.0, 0.005, 0.02, 0.05, 0.1, 0.2), 1, 4),
    ),
    "mabwiser-nearest": Tuned(
        MABWISER,
        [{**policy, "near": "KNearest"} for policy in NEAREST],
        # The first batch has 100 rows: there are no more neighbours.
        *("near_parameters.k", (1, 3, 10, 30, 60, 100), 1, 3),
    ),
    "kernel-ucb": Tuned(REFERENCE, _kernels(), "alpha", WIDTHS, 2, 4),
    "neural-linear": Tuned(
        REFERENCE,
        [{"method": "neural-linear", "hidden": 50, "steps": steps} for steps in (50, 200)],
        *("precision", (0.01, 0.05, 0.25, 1.0, 5.0, 25.0), 1, 3),
    ),
    "contextualbandits-boosting": Tuned(
        CONTEXTUALBANDITS,
        _trees("boosting", min_samples_leaf=5),
        *("base_parameters.max_iter", (5, 10, 20, 50, 100, 200), 2, 3),
    ),
    "contextualbandits-forest": Tuned(
        CONTEXTUALBANDITS,
        _trees("forest", n_estimators=50),
        *("base_parameters.min_samples_leaf", (1, 2, 4, 8, 16, 32), 1, 3),
    ),
}
"""The peers, from the fastest to the slowest."""
UNTUNED = {
    name: Method(SUBMAX, {"preset": name}) for name in (DEFAULT, "linucb", "linear-thompson")
}
RANDOM = Method(SUBMAX, {"preset": "random"})


def make(packages: Path, folder: Path) -> None:
    """Write every table as text, comma-separated, the class last; missing cells are a category."""
    import rdata  # Only needed here.

    folder.mkdir(parents=True, exist_ok=True)
    for name, source in NEW_TABLES.items():
        file = packages / "usr/lib/R/site-library" / source.package / "data" / source.file
        (frame,) = rdata.read_rda(file).values()
        label = frame[source.label].astype(str)
        frame = frame.drop(columns=[source.label, *source.dropped])
        if len(frame) > MOST_ROWS:
            some = np.sort(np.random.default_rng(0).permutation(len(frame))[:MOST_ROWS])
            frame, label = frame.iloc[some], label.iloc[some]
        cells = frame.astype(object).where(frame.notna(), "missing")
        lines = [
            ",".join([*map(_text, row), kind.replace(",", " ")])
            for row, kind in zip(cells.to_numpy(), label, strict=True)
        ]
        (folder / f"{name}.dat").write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{name}: {len(lines)} rows, {frame.shape[1]} columns, {label.nunique()} classes")


def _text(cell: object) -> str:
    return f"{cell:.9g}" if isinstance(cell, float) else str(cell).replace(",", " ")


def tune(options: argparse.Namespace) -> None:
    """Run both rounds and write the chosen parameters."""
    out, tables = options.folder / "tuning.csv", options.tables or TABLES
    data = options.data or data_folder()
    tried = {
        (name, option, position)
        for name in options.methods
        for option in range(len(PEERS[name].options))
        for position in range(PEERS[name].first, PEERS[name].last + 1)
    }
    for _ in range(2):
        methods = {_label(*one): PEERS[one[0]].with_value(*one[1:]) for one in tried}
        _run(methods, tables, [TUNING_SEED], data, out, options)
        best = _best(tried, out, tables)
        for name, (option, position) in best.items():
            mine = [p for other, o, p in tried if (other, o) == (name, option)]
            last = len(PEERS[name].values) - 1
            if position == max(mine):
                tried |= {(name, option, min(position + step, last)) for step in (1, 2)}
            if position == min(mine):
                tried |= {(name, option, max(position - step, 0)) for step in (1, 2)}
    chosen = {
        name: PEERS[name].with_value(*place) for name, place in _best(tried, out, tables).items()
    }
    file = options.folder / "chosen.json"
    before = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    written = {
        name: {"peer": one.peer, "parameters": one.parameters} for name, one in chosen.items()
    }
    file.write_text(json.dumps(before | written, indent=1) + "\n", encoding="utf-8")
    print(file.read_text(encoding="utf-8"))


def _best(
    tried: Iterable[tuple[str, int, int]], out: Path, tables: Sequence[str]
) -> dict[str, tuple[int, int]]:
    """Return the option and value with the highest mean score, for every method that was run."""
    scores = read_results(out)
    means: dict[str, dict[tuple[int, int], float]] = {}
    for name, option, position in sorted(tried):
        label = _label(name, option, position)
        cells = [Cell(REGIME, table, label, TUNING_SEED) for table in tables]
        if all(cell in scores for cell in cells):
            mean = float(np.mean([scores[cell] for cell in cells]))
            means.setdefault(name, {})[option, position] = mean
    return {name: max(of, key=lambda place: of[place]) for name, of in means.items()}


def _label(name: str, option: int, position: int) -> str:
    return f"{name} {option} {PEERS[name].values[position]:g}"


def play(options: argparse.Namespace) -> None:
    """Play the new tables with the chosen parameters, the defaults and random choice."""
    chosen = json.loads((options.folder / "chosen.json").read_text(encoding="utf-8"))
    methods: dict[str, Method] = {"random": RANDOM, **UNTUNED}
    methods |= {
        f"{name} tuned" if name in UNTUNED else name: Method(one["peer"], one["parameters"])
        for name, one in chosen.items()
    }
    wanted = [name for name in methods if name.removesuffix(" tuned") in options.methods]
    seeds = list(SEEDS)[: options.replicas]
    data = options.data or options.folder
    out = options.folder / "new-tables.csv"
    picked = {name: methods[name] for name in (*UNTUNED, "random", *wanted) if name in methods}
    _run(picked, options.tables or list(NEW_TABLES), seeds, data, out, options)
    show(out)


def _run(
    methods: Mapping[str, Method],
    tables: Sequence[str],
    seeds: Sequence[int],
    data: Path,
    out: Path,
    options: argparse.Namespace,
) -> None:
    """Play what the CSV does not have yet; slow methods come first, so that no process idles."""
    own = {SUBMAX, REFERENCE}
    peers = {method.peer: None for method in methods.values()}
    pythons = find_pythons([peer for peer in peers if peer not in own], options.same_python)
    pythons |= {peer: Path(sys.executable) for peer in peers if peer in own}
    done = read_results(out)
    order = [*UNTUNED, "random", *PEERS]
    slowest = sorted(methods, key=lambda name: -order.index(name.split()[0]))
    cells = [
        Cell(REGIME, table, name, seed)
        for name in slowest
        if methods[name].peer in pythons
        for table in tables
        for seed in seeds
    ]
    Pool(methods, pythons, data.resolve(), out).run(
        [cell for cell in cells if cell not in done], options.processes
    )


def show(out: Path) -> None:
    """Print lost rewards in percent, and ratios with t intervals over the tables."""
    losses: dict[str, dict[str, list[float]]] = {}
    for cell, score in read_results(out).items():
        losses.setdefault(cell.method, {}).setdefault(cell.table, []).append(100 * (1 - score))
    tables = sorted({table for of in losses.values() for table in of})
    complete = [name for name, of in losses.items() if len(of) == len(tables)]
    means = {name: {t: float(np.mean(losses[name][t])) for t in tables} for name in complete}
    peers = [name for name in complete if name not in (DEFAULT, "random")]
    names = [DEFAULT, *sorted(peers), "random"]
    names = [name for name in names if name in complete]
    print(
        f"| table | {' | '.join(names)} | ratio to the best other |\n"
        + "| --- " * (len(names) + 2)
        + "|"
    )
    for table in tables:
        least = min(means[name][table] for name in names)
        cells = [_cell(losses[name][table], means[name][table] == least) for name in names]
        best = min(peers, key=lambda name: means[name][table])
        ratio = f"{means[DEFAULT][table] / means[best][table]:.2f} {best}"
        print(f"| {table} | {' | '.join(cells)} | {ratio} |")
    print(
        "\n| method | its lost reward / that of the best other on each table | "
        f"lost reward of {DEFAULT} / its own, 95 % t interval over {len(tables)} tables |\n"
        "| --- | --- | --- |"
    )
    for name in names:
        to_best = [math.log(means[name][t] / min(means[peer][t] for peer in peers)) for t in tables]
        against = np.log([means[DEFAULT][t] / means[name][t] for t in tables])
        print(f"| {name} | {math.exp(np.mean(to_best)):.3f} | {_interval(against)} |")


def _cell(values: Sequence[float], best: bool) -> str:
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    mean = f"{np.mean(values):.1f}"
    return f"{f'**{mean}**' if best else mean} ± {error:.1f}"


def _interval(logarithms: np.ndarray) -> str:
    """The geometric mean with its 95 % t interval."""
    count, mean = len(logarithms), float(logarithms.mean())
    if count < 2 or not logarithms.any():
        return ""
    half = float(scipy.stats.t.ppf(0.975, count - 1) * logarithms.std(ddof=1) / math.sqrt(count))
    return f"{math.exp(mean):.2f} ({math.exp(mean - half):.2f} to {math.exp(mean + half):.2f})"


def main() -> None:
    options = _options()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.command == "make":
        make(options.packages, options.folder)
    elif options.command == "tune":
        tune(options)
    elif options.command == "play":
        play(options)
    else:
        show(options.folder / "new-tables.csv")


def _options() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("command", choices=("make", "tune", "play", "print"))
    parser.add_argument("--packages", type=Path, default=Path("packages"), help="unpacked packages")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of tables and results")
    parser.add_argument("--data", type=Path, help="folder of the tables, if another one")
    parser.add_argument("--tables", type=names, help="only these")
    parser.add_argument("--methods", type=names, default=list(PEERS), help="only these peers")
    parser.add_argument("--replicas", type=int, default=len(SEEDS))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--same-python", action="store_true", help="peers run with this Python")
    return parser.parse_args()


if __name__ == "__main__":
    main()
