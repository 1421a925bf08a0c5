"""Choose hyper-parameters by the same procedure for every method.

All candidates run on the same worlds, whose seed differs from that of the reported experiments. In
the first round every method has CANDIDATES candidates, drawn at random from its search space.
Methods with a network share the same list of network sizes and training lengths; each method also
has one parameter of its own. In the second round every method has NEIGHBOURS candidates around its
best one of the first round: each number is halved, kept or doubled, and the learning rate and the
own parameter may change by a factor of 3 and 5. So whoever ended at an edge can go beyond it.

The score of a candidate is its final regret divided by that of random choice, averaged over the
shifts. The candidate with the lowest score is copied into the experiments' TOML files by hand.

    python benchmarks/policies/tuning.py contextual --out tuning-contextual.csv
    python benchmarks/policies/tuning.py contextual --around tuning-contextual.csv --out near.csv

Candidates that are in the file of --out already are not run again.
"""

import argparse
import csv
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from rival_candidates import CONTEXTUAL_RIVALS, JOINT_RIVALS, OWN_OF_RIVALS, rival

SEED = 7
"""Seed of the worlds; the reported experiments have seed 2024."""
CANDIDATES = 24
"""Candidates of every method in the first round."""
NEIGHBOURS = 12
"""Candidates of every method in the second round."""
HIDDEN = (16, 32, 64, 128)
STEPS = (40, 75, 150, 300, 600, 1200)
RATES = (3e-4, 1e-3, 3e-3)
OBSERVATIONS, BATCH = 10000, 1000

Search = dict[str, tuple[float, float]]
"""The own parameter of each method, with the bounds between which it is log-uniform."""
CONTEXTUAL: Search = {
    "rcp-submax": (0.05, 2.0),
    "rcp-softmax-submax": (1e-3, 1.0),
    "neural-epsilon-greedy": (0.01, 0.4),
    "dropout-thompson": (0.01, 0.4),
    "neural-ucb": (0.003, 1.0),
    "neural-thompson": (0.003, 1.0),
    "linucb": (0.003, 3.0),
    "linear-thompson": (0.003, 3.0),
}
JOINT: Search = {
    "rcp-submax": (0.05, 2.0),
    "rcp-softmax-submax": (1e-3, 1.0),
    "climbing-epsilon-greedy": (0.01, 0.4),
    "climbing-dropout-thompson": (0.01, 0.4),
    "hill-climbing-thompson": (0.01, 3.0),
}
OWN = {
    "rcp-submax": "kl_weight",
    "rcp-softmax-submax": "weight_decay",
    "neural-epsilon-greedy": "dropout",
    "dropout-thompson": "dropout",
    "climbing-epsilon-greedy": "dropout",
    "climbing-dropout-thompson": "dropout",
    "neural-ucb": "width",
    "neural-thompson": "scale",
    "linucb": "alpha",
    "linear-thompson": "width",
    "hill-climbing-thompson": "prior_variance",
    **OWN_OF_RIVALS,
}
EPSILON = 0.05
"""The ε of ε-greedy is not tuned: the experiments report four values."""


COLUMNS = ("method", "parameters", "score", "regrets", "rewards")

Candidate = tuple[str, dict[str, Any]]
"""The name of a method, and the table of a policy."""


def policy(method: str, network: dict[str, Any], own: float, batch: int) -> dict[str, Any]:
    """Return the table of a candidate."""
    training = {"steps": network["steps"], "batch": batch, "learning_rate": network["rate"]}
    sized = {"hidden": network["hidden"], "training": training}
    if method in OWN_OF_RIVALS:
        return rival(method, sized, own)
    if method == "rcp-submax":
        estimator = {"kind": "cvae", "kl_weight": own, **sized}
        return {"kind": "reward-conditioned", "estimator": estimator, "strategy": "submax"}
    if method == "rcp-softmax-submax":
        sized["training"] = {**training, "weight_decay": own}
        estimator = {"kind": "softmax", **sized}
        return {"kind": "reward-conditioned", "estimator": estimator, "strategy": "submax"}
    if method in ("linucb", "linear-thompson", "hill-climbing-thompson"):
        return {"kind": method, OWN[method]: own}
    epsilon = {"epsilon": EPSILON} if method.endswith("epsilon-greedy") else {}
    return {"kind": method, OWN[method]: own, **epsilon, **sized}


def candidates(search: Search, batch: int) -> list[Candidate]:
    """Return the candidates of all methods, and random choice: name and table of each."""
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
    places = {method: rng.permutation(CANDIDATES) for method in search}
    found: list[Candidate] = [("random", {"kind": "random"})]
    for method, (low, high) in search.items():
        for network, place in zip(networks, places[method], strict=True):
            own = float(f"{low * (high / low) ** ((place + 0.5) / CANDIDATES):.2g}")
            found.append((method, policy(method, network, own, batch)))
    return found


def neighbours(search: Search, batch: int, rows: list[dict[str, str]]) -> list[Candidate]:
    """Return random choice, and candidates around the best one of every method in ``rows``."""
    rng = np.random.default_rng(SEED)
    found: list[Candidate] = [("random", {"kind": "random"})]
    for method in search:
        found_before = (row for row in rows if row["method"] == method)
        best = min(found_before, key=lambda row: float(row["score"]))
        known = {
            name: float(value) for name, value in map(str.split, best["parameters"].split(","))
        }
        # The places are spread evenly between a fifth and five times the best value.
        for place in rng.permutation(NEIGHBOURS):
            network = {
                "hidden": int(known.get("hidden", 0) * rng.choice((0.5, 1, 2))),
                "steps": int(known.get("steps", 0) * rng.choice((0.5, 1, 2))),
                "rate": float(f"{known.get('learning_rate', 0) * rng.choice((1 / 3, 1, 3)):.1g}"),
            }
            own = float(f"{known[OWN[method]] * 25 ** ((place + 0.5) / NEIGHBOURS - 0.5):.2g}")
            found.append((method, policy(method, network, own, batch)))
    return found


PROBLEMS: dict[str, tuple[Search, list[dict[str, Any]], int]] = {
    "contextual": (CONTEXTUAL, [{"kind": "contextual", "shift": s} for s in (0, -2, -4)], 256),
    "combinatorial": (JOINT, [{"kind": "combinatorial"}], 512),
    # Methods of the related work, on the same worlds with the same number of candidates.
    "contextual-rivals": (
        CONTEXTUAL_RIVALS,
        [{"kind": "contextual", "shift": s} for s in (0, -2, -4)],
        256,
    ),
    "combinatorial-rivals": (JOINT_RIVALS, [{"kind": "combinatorial"}], 512),
}


def run(
    table: dict[str, Any], environment: dict[str, Any], replicas: int, observations: int
) -> tuple[float, float]:
    """Return the mean final regret and reward of one candidate in one environment."""
    from submax.experiments.cells import make_environment, policy_of
    from submax.simulation.batch_flush import BatchFlush
    from submax.simulation.simulate import simulate

    trace = simulate(
        make_environment(environment),
        policy_of(table),
        observations=observations,
        replicas=replicas,
        delay=BatchFlush(BATCH),
        seed=SEED,
    )
    return float(trace.final_regret.mean()), float(trace.final_reward.mean())


def parameters(table: dict[str, Any]) -> str:
    """Return the parameters of a candidate in one line."""
    names = {"hidden", "steps", "learning_rate", *OWN.values()}
    found: dict[str, float] = {}

    def collect(part: dict[str, Any]) -> None:
        for name, value in part.items():
            if isinstance(value, dict):
                collect(value)
            elif name in names:
                found.setdefault(name, value)

    collect(table)
    return ", ".join(f"{name} {value:g}" for name, value in found.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", choices=PROBLEMS)
    parser.add_argument("--around", type=Path, help="results of the first round")
    parser.add_argument("--only", action="append", help="a method, if not all of them")
    parser.add_argument("--replicas", type=int, default=16)
    parser.add_argument("--observations", type=int, default=OBSERVATIONS)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    # Several processes share the memory of a GPU, and each has one thread for numpy.
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    search, environments, batch = PROBLEMS[arguments.problem]
    if arguments.around:
        with arguments.around.open(encoding="utf-8", newline="") as file:
            made = neighbours(search, batch, list(csv.DictReader(file)))
    else:
        made = candidates(search, batch)
    if arguments.only:
        made = [one for one in made if one[0] in ("random", *arguments.only)]
    known = rows_of(arguments.out)
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(arguments.workers, context) as pool,
        arguments.out.open("w", encoding="utf-8", newline="") as file,
    ):
        futures = [
            [
                pool.submit(run, table, one, arguments.replicas, arguments.observations)
                for one in environments
            ]
            if (method, parameters(table)) not in known
            else []
            for method, table in made
        ]
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        # Rows of an earlier call come first, so that none is lost if this call is stopped as well.
        writer.writerows(known.values())
        file.flush()
        base: list[float] = []
        for (method, table), parts in zip(made, futures, strict=True):
            if not parts:
                row = known[method, parameters(table)]
                base = base or list(map(float, row["regrets"].split()))
                continue
            ends = [part.result() for part in parts]
            base = base or [end[0] for end in ends]
            score = float(np.mean([end[0] / low for end, low in zip(ends, base, strict=True)]))
            regrets, rewards = (" ".join(f"{end[k]:.1f}" for end in ends) for k in (0, 1))
            writer.writerow(
                dict(
                    zip(
                        COLUMNS,
                        (method, parameters(table), f"{score:.3f}", regrets, rewards),
                        strict=True,
                    )
                )
            )
            file.flush()
            print(f"{score:.3f}  {method:26s} {parameters(table):60s} {regrets}", flush=True)


def rows_of(file: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Return the rows of an earlier call, by method and parameters."""
    if not file.exists():
        return {}
    with file.open(encoding="utf-8", newline="") as opened:
        rows = csv.DictReader(opened)
        return {(row["method"], row["parameters"]): row for row in rows if row["rewards"]}


if __name__ == "__main__":
    main()
