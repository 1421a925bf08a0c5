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

Candidates that are in the file of --out already are not run again. With --minutes the call stops
itself in time, with status 3 if candidates are left; the same call goes on later. If a candidate
fails, the others go on, and the status is 1. With --each only the first candidates of each method
are run, equally many of every method.
"""

import argparse
import csv
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from candidate_runs import SEED, Candidate, tune
from rival_candidates import CONTEXTUAL_RIVALS, JOINT_RIVALS, OWN_OF_RIVALS, rival

CANDIDATES = 24
"""Candidates of every method in the first round."""
NEIGHBOURS = 12
"""Candidates of every method in the second round."""
HIDDEN = (16, 32, 64, 128)
STEPS = (40, 75, 150, 300, 600, 1200)
RATES = (3e-4, 1e-3, 3e-3)
OBSERVATIONS = 10000
UNFINISHED = 3
"""Exit status of a call that a time limit has stopped before all candidates were run."""

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


Named = tuple[str, dict[str, Any]]
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


def candidates(search: Search, batch: int) -> list[Named]:
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
    found: list[Named] = [("random", {"kind": "random"})]
    for method, (low, high) in search.items():
        for network, place in zip(networks, places[method], strict=True):
            own = float(f"{low * (high / low) ** ((place + 0.5) / CANDIDATES):.2g}")
            found.append((method, policy(method, network, own, batch)))
    return found


def neighbours(search: Search, batch: int, rows: list[dict[str, str]]) -> list[Named]:
    """Return random choice, and candidates around the best one of every method in ``rows``."""
    rng = np.random.default_rng(SEED)
    found: list[Named] = [("random", {"kind": "random"})]
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


def first_of_each(made: list[Named], count: int) -> list[Named]:
    """Return the first ``count`` candidates of each method, in their order."""
    seen: Counter[str] = Counter()
    found = []
    for method, table in made:
        seen[method] += 1
        if seen[method] <= count:
            found.append((method, table))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", choices=PROBLEMS)
    parser.add_argument("--around", type=Path, help="results of the first round")
    parser.add_argument("--only", action="append", help="a method, if not all of them")
    parser.add_argument("--replicas", type=int, default=16)
    parser.add_argument("--observations", type=int, default=OBSERVATIONS)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--minutes", type=float, help="time after which the call stops itself")
    parser.add_argument("--each", type=int, default=CANDIDATES, help="candidates of each method")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    search, environments, batch = PROBLEMS[arguments.problem]
    if arguments.around:
        with arguments.around.open(encoding="utf-8", newline="") as file:
            made = neighbours(search, batch, list(csv.DictReader(file)))
    else:
        made = candidates(search, batch)
    if arguments.only:
        made = [one for one in made if one[0] in ("random", *arguments.only)]
    made = first_of_each(made, arguments.each)
    named = [Candidate(method, parameters(table), table) for method, table in made]
    sizes = (arguments.replicas, arguments.observations)
    failed, left = tune(
        named, environments, sizes, arguments.workers, arguments.out, arguments.minutes
    )
    if failed:
        sys.exit(f"{len(failed)} candidates failed; the results of the others are written")
    if left:
        sys.exit(UNFINISHED)


if __name__ == "__main__":
    main()
