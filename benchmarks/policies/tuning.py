"""Choose hyper-parameters by the same procedure for every method.

    python benchmarks/policies/tuning.py contextual --out tuning-contextual.csv

``tuning.toml`` says what is searched. All candidates run on the same worlds, whose seed differs
from that of the reported experiments. In the first round every method has CANDIDATES candidates,
drawn at random from its search space. Methods with a network share the same list of network sizes
and training lengths; each method also has one parameter of its own. In the second round every
method has NEIGHBOURS candidates around its best one of the first round: each number is halved, kept
or doubled, and the learning rate and the own parameter may change by a factor of 3 and 5. So
whoever ended at an edge can go beyond it.

The score of a candidate is its final regret divided by that of random choice, averaged over the
environments. In the end the tables of the best candidates are printed, to be copied into the
experiments' TOML files. A row is written when its candidate is finished, and candidates that are in
the file already are not run again: an interrupted call goes on, and so does a published table, as
with ``--out docs/results/tuning/contextual-rivals.csv``. If a candidate fails, the others go on,
and the status is 1. Many processes share one GPU: start ``nvidia-cuda-mps-control -d`` before.
"""

import argparse
import csv
import dataclasses
import json
import os
import sys
import tomllib
from collections import Counter
from concurrent.futures import Executor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.environments.contextual import Combinatorial
from submax.simulation.delays import BatchedRewards
from submax.simulation.experiment import make_environment, policy_of
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
QUICK_COMPILING = {
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "XLA_FLAGS": "--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false",
}
"""Several processes share the memory of a GPU, and do not try many forms of each matrix product.

Every candidate has programs of its own, and these trials took longer than the training.
"""


PROBLEMS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""What is tuned, by problem: ``environments``, ``batch`` and ``methods``."""
TUNED = {"hidden", "steps", "learning_rate"}
TUNED |= {one["own"][0] for problem in PROBLEMS.values() for one in problem["methods"].values()}
"""Names of parameters that are tuned."""
Row = dict[str, str]
Search = dict[str, Any]
"""A problem of ``tuning.toml``."""
Network = dict[str, Any]
"""``hidden``, ``steps`` and ``rate``."""


class Candidate(NamedTuple):
    """A method and the table of the policy."""

    method: str
    table: dict[str, Any]

    @property
    def parameters(self) -> str:
        """The tuned parameters in one line."""
        found: dict[str, float] = {}

        def collect(part: dict[str, Any]) -> None:
            for name, value in part.items():
                if isinstance(value, dict):
                    collect(value)
                elif name in TUNED:
                    found.setdefault(name, value)

        collect(self.table)
        return ", ".join(f"{name} {value:g}" for name, value in found.items())


RANDOM = Candidate("random", {"kind": "random"})


def candidate(search: Search, method: str, network: Network, value: float) -> Candidate:
    """Return a method with its network and the value of its own parameter."""
    settings = search["methods"][method]
    own = min(value, settings.get("most", value))
    training = {
        "steps": network["steps"],
        "batch": search["batch"],
        "learning_rate": network["rate"],
    }
    drawn = {
        "own": own,
        "hidden": network["hidden"],
        "training": training,
        "decaying": {**training, "weight_decay": own},
    }

    def filled(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: filled(inside) for name, inside in part.items()}
        return drawn.get(part, part) if isinstance(part, str) else part

    usual = {"kind": method, settings["own"][0]: "own", "hidden": "hidden", "training": "training"}
    return Candidate(method, filled(settings.get("policy", usual)))


def candidates(search: Search) -> list[Candidate]:
    """Return random choice, and the candidates of all methods."""
    rng = np.random.default_rng(SEED)
    networks = [
        {
            "hidden": int(rng.choice(HIDDEN)),
            "steps": int(rng.choice(STEPS)),
            "rate": float(rng.choice(RATES)),
        }
        for _ in range(CANDIDATES)
    ]
    # The places in the range of the own parameter are spread evenly, in random order.
    places = {method: rng.permutation(CANDIDATES) for method in search["methods"]}
    found = [RANDOM]
    for method, settings in search["methods"].items():
        _, low, high = settings["own"]
        for network, place in zip(networks, places[method], strict=True):
            value = float(f"{low * (high / low) ** ((place + 0.5) / CANDIDATES):.2g}")
            found.append(candidate(search, method, network, value))
    return found


def neighbours(search: Search, rows: list[Row]) -> list[Candidate]:
    """Return candidates around the best one of every method in ``rows``."""
    rng, found = np.random.default_rng(SEED), list[Candidate]()
    for method in search["methods"]:
        known = numbers(best_row(rows, method))
        # The places are spread evenly between a fifth and five times the best value.
        for place in rng.permutation(NEIGHBOURS):
            network = {
                "hidden": int(known.get("hidden", 0) * rng.choice((0.5, 1, 2))),
                "steps": int(known.get("steps", 0) * rng.choice((0.5, 1, 2))),
                "rate": float(f"{known.get('learning_rate', 0) * rng.choice((1 / 3, 1, 3)):.1g}"),
            }
            own = known[search["methods"][method]["own"][0]]
            value = float(f"{own * 25 ** ((place + 0.5) / NEIGHBOURS - 0.5):.2g}")
            found.append(candidate(search, method, network, value))
    return found


def best_row(rows: list[Row], method: str) -> Row:
    return min(
        (row for row in rows if row["method"] == method), key=lambda row: float(row["score"])
    )


def numbers(row: Row) -> dict[str, float]:
    """Return the parameters of a row."""
    return {name: float(value) for name, value in map(str.split, row["parameters"].split(","))}


# Runs ---------------------------------------------------------------------------------------------


class Ends(NamedTuple):
    """Mean final regrets and rewards in all environments."""

    regrets: list[float]
    rewards: list[float]


@dataclasses.dataclass(frozen=True)
class WithoutBest(Combinatorial):
    """Joint choices whose best expected reward is not computed: it takes longer than many a policy.

    All policies meet the same worlds and contexts, so the sum of the best rewards is computed once,
    for random choice.
    """

    def best_reward(self, world: Any, context: Any) -> Floats:
        return np.zeros(context.shape[:2])


def ends(
    table: dict[str, Any], environments: list[dict[str, Any]], sizes: tuple[int, int], best: bool
) -> Ends:
    """Run a policy in all environments; without ``best`` regrets lack the best rewards."""
    found = Ends([], [])
    for environment in map(make_environment, environments):
        if isinstance(environment, Combinatorial) and not best:
            environment = WithoutBest(**dataclasses.asdict(environment))
        trace = simulate(
            environment,
            policy_of(table),
            replicas=sizes[0],
            observations=sizes[1],
            delay=BatchedRewards(BATCH),
            seed=SEED,
        )
        found.regrets.append(float(trace.final_regret.mean()))
        found.rewards.append(float(trace.final_reward.mean()))
    return found


class Tuning:
    """The rows of a file, and the runs that add to it."""

    def __init__(self, given: argparse.Namespace, executor: Executor) -> None:
        self._search, self._given, self._executor = PROBLEMS[given.problem], given, executor
        self._sizes = given.replicas, given.observations
        self._lowest: Ends | None = None
        self.rows: list[Row] = []
        self.failed = 0
        if given.out.exists():
            with given.out.open(encoding="utf-8", newline="") as file:
                self.rows = list(csv.DictReader(file))
        else:
            given.out.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")

    def run(self, number: int, made: list[Candidate]) -> None:
        """Run the candidates of a round that are not in the file yet."""
        seen: Counter[str] = Counter()
        known = {(row["round"], row["method"], row["parameters"]) for row in self.rows}
        new = []
        for one in made:
            seen[one.method] += 1
            wanted = self._given.only is None or one.method in ("random", *self._given.only)
            key = str(number), one.method, one.parameters
            if wanted and seen[one.method] <= self._given.each and key not in known:
                new.append(one)
        # The longest trainings first, so that no process waits for them in the end.
        new.sort(key=lambda one: -one.table.get("training", {}).get("steps", 0))
        if new and self._lowest is None:
            both = [self._submit(RANDOM, best) for best in (True, False)]
            self._lowest, self._without = (future.result() for future in both)
        futures = {self._submit(one, best=False): one for one in new}
        for future in as_completed(futures):
            if (error := future.exception()) is not None:
                self.failed += 1
                print("FAILED", *futures[future], error, sep="  ", flush=True)
            else:
                self._add(number, futures[future], future.result())

    def _submit(self, one: Candidate, best: bool) -> Any:
        return self._executor.submit(
            ends, one.table, self._search["environments"], self._sizes, best
        )

    def _add(self, number: int, one: Candidate, found: Ends) -> None:
        assert self._lowest is not None
        lowest = np.array(self._lowest.regrets)
        regrets = lowest - np.array(self._without.regrets) + np.array(found.regrets)
        score = (regrets / lowest).mean()
        texts = (" ".join(f"{end:.1f}" for end in of) for of in (regrets, found.rewards))
        values = (str(number), one.method, one.parameters, f"{score:.3f}", *texts)
        self.rows.append(dict(zip(COLUMNS, values, strict=True)))
        with self._given.out.open("a", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(values)
        print(*values, sep="  ", flush=True)

    def best(self) -> None:
        """Print the table of the best candidate of every method in TOML."""
        for method in {row["method"]: None for row in self.rows if row["method"] != "random"}:
            known = numbers(best_row(self.rows, method))
            network = {name: int(known[name]) for name in ("hidden", "steps") if name in known}
            network["rate"] = known.get("learning_rate", 0.0)
            own = known[self._search["methods"][method]["own"][0]]
            one = candidate(self._search, method, {"hidden": 0, "steps": 0, **network}, own)
            print(f"    {inline({'name': method, **one.table})},")


def inline(value: Any) -> str:
    """Return a value as TOML in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {inline(one)}" for key, one in value.items()) + " }"
    return json.dumps(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", choices=PROBLEMS)
    parser.add_argument("--rounds", type=int, choices=(1, 2), default=2, help="the last round")
    parser.add_argument("--only", action="append", help="a method, first round only")
    parser.add_argument("--each", type=int, default=CANDIDATES, help="candidates in each round")
    parser.add_argument("--replicas", type=int, default=16)
    parser.add_argument("--observations", type=int, default=OBSERVATIONS)
    parser.add_argument("--workers", type=int, default=available_cores())
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    for name, value in QUICK_COMPILING.items():
        os.environ.setdefault(name, value)
    search = PROBLEMS[given.problem]
    with local_executor(given.workers) as executor:
        tuning = Tuning(given, executor)
        tuning.run(1, candidates(search))
        if given.rounds == 2 and given.only is None:
            first = [row for row in tuning.rows if row["round"] == "1"]
            tuning.run(2, neighbours(search, first))
    tuning.best()
    if tuning.failed:
        sys.exit(f"{tuning.failed} candidates failed; the results of the others are written")


if __name__ == "__main__":
    main()
