"""Choose hyper-parameters by the same procedure for every method.

    python benchmarks/policies/tuning.py contextual --out tuning-contextual.csv

``tuning.toml`` says what is searched. All candidates run on the same worlds, whose seed differs
from that of the reported experiments. In the first round every method has CANDIDATES candidates,
drawn at random from its search space. Methods with a network share the same list of network sizes
and training lengths; each method also has one parameter of its own. In the second round every
method has NEIGHBOURS candidates around its best one of the first round: each number is halved, kept
or doubled, and the learning rate and the own parameter may change by a factor of 3 and 5. So
whoever ended at an edge can go beyond it. With ``--candidates FILE`` the candidates of an earlier
search are scored again, and nothing is searched.

The score of a candidate is its final regret divided by that of random choice, averaged over the
environments. In the end the tables of the best candidates are printed, to be copied into the
experiments' TOML files. A row is written when its candidate is finished, and candidates that are in
the file already are not run again: an interrupted call goes on, and so does a published table, as
with ``--out docs/results/tuning/contextual-rivals.csv``. If a candidate fails, the others go on,
and the status is 1. Many processes share one GPU: start ``nvidia-cuda-mps-control -d`` before.
"""

import argparse
import json
import os
import sys
import tomllib
from concurrent.futures import Executor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from measuring import append_rows, read_rows
from submax.environments import ENVIRONMENTS
from submax.policies import make_policy
from submax.simulation.delays import BatchedRewards
from submax.simulation.results import record_run
from submax.simulation.runner import available_cores, local_executor
from submax.simulation.simulate import simulate

SEED = 7
"""Seed of the worlds and of the candidates; the reported experiments have seed 2024."""
CANDIDATES, NEIGHBOURS = 24, 12
"""Candidates of every method in the first and in the second round."""
OBSERVATIONS, BATCH = 10_000, 1000
HIDDEN = (16, 32, 64, 128)
STEPS = (40, 75, 150, 300, 600, 1200)
RATES = (3e-4, 1e-3, 3e-3)
COLUMNS = ("round", "method", "parameters", "score", "regrets", "rewards")
QUICK_COMPILING = "--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false"
"""A GPU does not try many forms of each matrix product: every candidate has programs of its own,
and these trials took longer than the training."""
PROBLEMS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""What is tuned, by problem: ``environments``, ``batch`` and ``methods``."""
TUNED = {"hidden", "steps", "learning_rate"}
TUNED |= {one["own"][0] for problem in PROBLEMS.values() for one in problem["methods"].values()}
"""Names of parameters that are tuned."""
Row = dict[str, str]
Search = dict[str, Any]
"""A problem of ``tuning.toml``."""
Numbers = dict[str, float]
"""``hidden``, ``steps``, ``learning_rate`` and the own parameter of a method, by name."""


class Candidate(NamedTuple):
    """A method and the table of the policy."""

    method: str
    table: dict[str, Any]

    @property
    def parameters(self) -> str:
        """The tuned parameters in one line."""
        return ", ".join(f"{name} {value:g}" for name, value in tuned(self.table).items())


def tuned(table: dict[str, Any]) -> dict[str, float]:
    """The tuned parameters of a table and the tables in it; of a name the first one counts."""
    found: dict[str, float] = {}
    for name, value in table.items():
        more = tuned(value) if isinstance(value, dict) else {name: value} if name in TUNED else {}
        found = found | more | found
    return found


RANDOM = Candidate("random", {"kind": "random"})


def candidate(search: Search, method: str, known: Numbers) -> Candidate:
    """Return a method with these parameters; one without a network has no others than its own."""
    settings = search["methods"][method]
    name = settings["own"][0]
    own, hidden = min(known[name], settings.get("most", known[name])), int(known.get("hidden", 0))
    training = {
        "steps": int(known.get("steps", 0)),
        "batch": search["batch"],
        "learning_rate": known.get("learning_rate", 0.0),
    }
    decaying = {**training, "weight_decay": own}
    drawn = {"own": own, "hidden": hidden, "training": training, "decaying": decaying}

    def filled(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: filled(inside) for name, inside in part.items()}
        return drawn.get(part, part) if isinstance(part, str) else part

    usual = {"kind": method, name: "own", "hidden": "hidden", "training": "training"}
    return Candidate(method, filled(settings.get("policy", usual)))


def candidates(search: Search) -> list[Candidate]:
    """Return random choice, and the candidates of all methods."""
    rng = np.random.default_rng(SEED)
    choices = {"hidden": HIDDEN, "steps": STEPS, "learning_rate": RATES}
    networks = [
        {name: float(rng.choice(values)) for name, values in choices.items()}
        for _ in range(CANDIDATES)
    ]
    # The places in the range of the own parameter are spread evenly, in random order.
    places = {method: rng.permutation(CANDIDATES) for method in search["methods"]}
    found = [RANDOM]
    for method, settings in search["methods"].items():
        own, low, high = settings["own"]
        for network, place in zip(networks, places[method], strict=True):
            value = float(f"{low * (high / low) ** ((place + 0.5) / CANDIDATES):.2g}")
            found.append(candidate(search, method, {**network, own: value}))
    return found


def neighbours(search: Search, rows: list[Row]) -> list[Candidate]:
    """Return candidates around the best one of every method in ``rows``."""
    rng, found = np.random.default_rng(SEED), list[Candidate]()
    factors = {"hidden": (0.5, 1, 2), "steps": (0.5, 1, 2), "learning_rate": (1 / 3, 1, 3)}
    for method, settings in search["methods"].items():
        best, own = numbers(best_row(rows, method)), settings["own"][0]
        # The places are spread evenly between a fifth and five times the best value.
        for place in rng.permutation(NEIGHBOURS):
            near = {name: best.get(name, 0) * rng.choice(by) for name, by in factors.items()}
            near["learning_rate"] = float(f"{near['learning_rate']:.1g}")
            near[own] = float(f"{best[own] * 25 ** ((place + 0.5) / NEIGHBOURS - 0.5):.2g}")
            found.append(candidate(search, method, near))
    return found


def best_row(rows: list[Row], method: str) -> Row:
    own = (row for row in rows if row["method"] == method)
    return min(own, key=lambda row: float(row["score"]))


def numbers(row: Row) -> Numbers:
    """Return the parameters of a row."""
    return {name: float(value) for name, value in map(str.split, row["parameters"].split(","))}


def candidate_of(search: Search, row: Row) -> Candidate:
    """Return the candidate that a row of a file is about."""
    return RANDOM if row["method"] == "random" else candidate(search, row["method"], numbers(row))


# Runs ---------------------------------------------------------------------------------------------


def ends(
    table: dict[str, Any], environments: list[dict[str, Any]], replicas: int
) -> tuple[list[float], list[float]]:
    """Run a policy in all environments; return its mean final regrets and rewards."""
    traces = [
        simulate(
            ENVIRONMENTS.build(environment, {}),
            make_policy(table),
            replicas=replicas,
            observations=OBSERVATIONS,
            delay=BatchedRewards(BATCH),
            seed=SEED,
        )
        for environment in environments
    ]
    regrets = [float(trace.final_regret.mean()) for trace in traces]
    return regrets, [float(trace.final_reward.mean()) for trace in traces]


def run(number: int, made: list[Candidate], given: argparse.Namespace, executor: Executor) -> int:
    """Run the candidates of a round that are not in the file yet; return how many failed."""
    known = {
        (row["round"], row["method"], row["parameters"]): row
        for row in read_rows(given.out, COLUMNS)
    }
    failed, chosen = 0, {"random", *(given.only or PROBLEMS[given.problem]["methods"])}
    new = [
        one
        for one in made
        if one.method in chosen and (str(number), one.method, one.parameters) not in known
    ]
    # Random choice, to which all are compared, and then the longest trainings, for which no process
    # is to wait in the end.
    new.sort(key=lambda one: (one != RANDOM, -one.table.get("training", {}).get("steps", 0)))
    worlds = PROBLEMS[given.problem]["environments"]
    futures = {executor.submit(ends, one.table, worlds, given.replicas): one for one in new}
    rows = [row for row in known.values() if row["method"] == "random"]
    lowest = [float(text) for row in rows for text in row["regrets"].split()]
    if not lowest:
        lowest = next(future for future, one in futures.items() if one == RANDOM).result()[0]
    for future in as_completed(futures):
        one = futures[future]
        if (error := future.exception()) is not None:
            failed += 1
            print("FAILED", *one, error, sep="  ", flush=True)
            continue
        regrets, rewards = future.result()
        score = float(np.mean(np.divide(regrets, lowest)))
        texts = (" ".join(f"{end:.1f}" for end in of) for of in (regrets, rewards))
        values = (str(number), one.method, one.parameters, f"{score:.3f}", *texts)
        append_rows(given.out, [values])
        print(*values, sep="  ", flush=True)
    return failed


def print_best(search: Search, rows: list[Row]) -> None:
    """Print the table of the best candidate of every method in TOML."""
    for method in {row["method"]: None for row in rows if row["method"] != "random"}:
        one = candidate_of(search, best_row(rows, method))
        print(f"    {inline({'name': method, **one.table})},")


def inline(value: Any) -> str:
    """Return a value as TOML in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {inline(one)}" for key, one in value.items()) + " }"
    return json.dumps(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", choices=PROBLEMS)
    parser.add_argument("--only", action="append", help="a method, first round only")
    parser.add_argument("--replicas", type=int, default=16)
    parser.add_argument("--workers", type=int, default=available_cores())
    parser.add_argument("--candidates", type=Path, help="a CSV: score its candidates again")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    os.environ["XLA_FLAGS"] = f"{QUICK_COMPILING} {os.environ.get('XLA_FLAGS', '')}"
    search = PROBLEMS[given.problem]
    with local_executor(given.workers) as executor:
        failed, earlier = 0, read_rows(given.candidates, COLUMNS) if given.candidates else []
        for number in sorted({row["round"] for row in earlier}):
            rows = [row for row in earlier if row["round"] == number]
            failed += run(int(number), [candidate_of(search, row) for row in rows], given, executor)
        if not earlier:
            failed = run(1, candidates(search), given, executor)
        if not earlier and given.only is None:
            first = [row for row in read_rows(given.out, COLUMNS) if row["round"] == "1"]
            failed += run(2, neighbours(search, first), given, executor)
    print_best(search, read_rows(given.out, COLUMNS))
    record_run(given.out)
    if failed:
        sys.exit(f"{failed} candidates failed; the results of the others are written")


if __name__ == "__main__":
    main()
