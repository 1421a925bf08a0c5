"""Tune the methods of the related work, and run them beside those of the paper, by one command.

    python benchmarks/policies/rivals.py --out rivals

First both rounds of tuning.py give every rival 36 candidates, in the contextual and in the
combinatorial problem. Then the experiments contextual-rivals and combinatorial-rivals are written
with the best candidate of each (their TOML files are in OUT/tuned, to be copied into the package),
and all five experiments with rivals are run. The results are in OUT/results, one folder for each
experiment; in summary.csv there are means, standard errors and seconds.
`python docs/generators/rivals_page.py OUT/results` writes the page. What is finished
already is not run again, and `--resume docs/results/tuning` takes the candidates that are published
there as finished; OUT/tuning has the tables to publish, one for each problem. Many
processes share one GPU: start `nvidia-cuda-mps-control -d` before, or they wait for each other most
of the time. --only runs some parts, such as `--only combinatorial-rivals`. --quick runs few
replicas and a shorter tuning, to see that everything works. With --minutes the command stops itself
in time, with status 3 if something is left, and the same command goes on later. If there is no time
for the whole second round, `--near 6` runs the first 6 of its candidates of every method, and
chooses among these and the first round only.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

from candidate_runs import QUICK_COMPILING
from timed_calls import TimedCalls
from tuning import (
    CANDIDATES,
    NEIGHBOURS,
    PROBLEMS,
    candidates,
    first_of_each,
    neighbours,
    parameters,
    policy,
)
from tuning_rounds import join, round_file, rows_of, split

HERE = Path(__file__).parent
EXPERIMENTS = HERE.parents[1] / "src" / "submax" / "experiments" / "rivals"
TUNED = ("contextual-rivals", "combinatorial-rivals")
UNTUNED = ("pricing-rivals", "bakeoff-dense-rivals", "bakeoff-rare-rivals")
QUICK_CANDIDATES = 2
"""Candidates of every method in each round with --quick."""
NAMES = {"rcp-continual-cvae-submax": "rcp-continual-submax"}
"""Names in the experiment of methods that are tuned under another name."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, help="number of processes; as many as cores if absent")
    parser.add_argument("--quick", action="store_true", help="few replicas, to see that it works")
    parser.add_argument("--only", choices=[*TUNED, *UNTUNED], nargs="+", help="some parts")
    parser.add_argument("--resume", type=Path, help="a folder with tables of unfinished tunings")
    parser.add_argument("--minutes", type=float, help="time after which the command stops itself")
    parser.add_argument("--near", type=int, default=NEIGHBOURS, help="candidates of round 2")
    given = parser.parse_args()
    if given.resume and given.quick:
        parser.error("--resume has candidates of full length: leave out --quick or --resume")
    if given.quick:
        given.near = QUICK_CANDIDATES
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICK_COMPILING}"
    run_parts(given, given.only or [*TUNED, *UNTUNED], TimedCalls.of(given.minutes))


def run_parts(given: argparse.Namespace, wanted: list[str], calls: TimedCalls) -> None:
    """Tune and run the wanted parts."""
    jobs = ["--jobs", str(given.jobs)] if given.jobs else []
    for problem in (one for one in TUNED if one in wanted):
        folder = given.out / "tuning"
        folder.mkdir(parents=True, exist_ok=True)
        if given.resume:
            split(given.resume / f"{problem}.csv", folder, problem)
        try:
            tuned(problem, folder, given, calls)
        finally:
            rows = rows_of(join(folder, problem))
        file = given.out / "tuned" / f"{problem}.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        text = (EXPERIMENTS / f"{problem}.toml").read_text(encoding="utf-8")
        compared = of_candidates(rows, problem, given.near)
        file.write_text(with_best(text, problem, compared), encoding="utf-8")
        calls.run("-m", "submax", "simulate", str(file), *options(given), *jobs)
    untuned = [one for one in UNTUNED if one in wanted]
    if untuned:
        calls.run("-m", "submax", "reproduce", *untuned, *options(given), *jobs)


def options(given: argparse.Namespace) -> list[str]:
    """Return the options of all experiments."""
    quick = ["--quick"] if given.quick else []
    return ["--out", str(given.out / "results"), *quick]


def tuned(problem: str, folder: Path, given: argparse.Namespace, calls: TimedCalls) -> None:
    """Run both rounds of tuning, unless the files in the folder are complete."""
    first, second = (round_file(folder, problem, number) for number in (1, 2))
    few = ["--replicas", "2", "--observations", "2000"] if given.quick else []
    several = ["--workers", str(given.jobs)] if given.jobs else []
    count = QUICK_CANDIDATES if given.quick else CANDIDATES
    if not complete(first, round_candidates(problem, None, count)):
        calls.tune(problem, "--each", str(count), "--out", str(first), *few, *several)
    if not complete(second, round_candidates(problem, first, given.near)):
        around = ["--around", str(first), "--each", str(given.near)]
        calls.tune(problem, *around, "--out", str(second), *few, *several)


def round_candidates(problem: str, around: Path | None, count: int) -> set[tuple[str, str]]:
    """Return method and parameters of ``count`` candidates of each method, in one round."""
    search, _, batch = PROBLEMS[problem]
    made = neighbours(search, batch, rows_of(around)) if around else candidates(search, batch)
    return {(method, parameters(table)) for method, table in first_of_each(made, count)}


def complete(file: Path, wanted: set[tuple[str, str]]) -> bool:
    """Return whether the file has all wanted candidates."""
    return wanted <= {(row["method"], row["parameters"]) for row in rows_of(file)}


def of_candidates(rows: list[dict[str, str]], problem: str, near: int) -> list[dict[str, str]]:
    """Return the rows of the first round, and those of ``near`` candidates of round 2."""
    search, _, batch = PROBLEMS[problem]
    first, second = ([row for row in rows if row["round"] == number] for number in ("1", "2"))
    made = first_of_each(neighbours(search, batch, first), near)
    wanted = {(method, parameters(table)) for method, table in made}
    return [*first, *(row for row in second if (row["method"], row["parameters"]) in wanted)]


def with_best(text: str, problem: str, rows: list[dict[str, str]]) -> str:
    """Return the TOML text of an experiment with the best candidate of every tuned method.

    Each rival has one line in the text, which begins with its name.
    """
    search, _, batch = PROBLEMS[problem]
    lines = text.splitlines()
    for method in search:
        table = best(method, rows, batch)
        name = NAMES.get(method, method)
        start = f'    {{ name = "{name}",'
        places = [place for place, line in enumerate(lines) if line.startswith(start)]
        if len(places) != 1:
            raise SystemExit(f"{problem}.toml must have one line for {name}, not {len(places)}")
        lines[places[0]] = f"    {inline({'name': name, **table})},"
    return "\n".join(lines) + "\n"


def best(method: str, rows: list[dict[str, str]], batch: int) -> dict[str, Any]:
    """Return the table of a method's candidate with the lowest score."""
    from tuning import OWN

    row = min((row for row in rows if row["method"] == method), key=lambda row: float(row["score"]))
    known = {name: float(value) for name, value in map(str.split, row["parameters"].split(","))}
    network = {
        "hidden": int(known["hidden"]),
        "steps": int(known["steps"]),
        "rate": known["learning_rate"],
    }
    return policy(method, network, known[OWN[method]], batch)


def inline(value: Any) -> str:
    """Return a value as TOML in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {inline(one)}" for key, one in value.items()) + " }"
    return json.dumps(value)


if __name__ == "__main__":
    main()
