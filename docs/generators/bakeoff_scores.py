"""The numbers of the bake-off: scores of submax and of other libraries, by table and method."""

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from submax.core.numerics import standard_error

DENSE, RARE = "dense", "rare"
HELD_OUT = ("letter", "marketing", "ring", "spambase", "splice", "texture", "twonorm")
"""Tables on which no setting of the default or of a peer was chosen, as in
benchmarks/bakeoff/bakeoff.py."""
ADAPTIVE, RANDOM = "rcp-adaptive", "random"
NETWORKS = ("rcp-softmax-submax", "rcp-cvae-submax")
VOWPAL_WABBIT = "vw-"
LINEAR = ("linucb", "linear-thompson", "mabwiser-lin", "contextualbandits-linucb")
"""How the names of methods with one linear model for each action begin."""


class Score(NamedTuple):
    """A mean over replicas or seeds and its standard error, which is NaN for a single one."""

    mean: float
    error: float


Scores = dict[str, dict[str, Score]]
"""By table, then by policy or method."""


def aggregate_peers(files: Iterable[Path]) -> list[dict[str, object]]:
    """One row for each regime, table and method in the files that bakeoff.py writes."""
    found: dict[tuple[str, str, str, int], list[float]] = defaultdict(list)
    for file in files:
        for row in read_rows(file):
            key = row["regime"], row["table"], row["method"], int(row["decisions"])
            found[key].append(float(row["score"]))
    return [
        {
            "regime": regime,
            "table": table,
            "method": method,
            "decisions": decisions,
            "seeds": len(scores),
            "score_mean": round(float(np.mean(scores)), 6),
            "score_standard_error": round(standard_error(np.array(scores)), 6),
        }
        for (regime, table, method, decisions), scores in sorted(found.items())
    ]


def read_peers(file: Path, regime: str) -> Scores:
    """What the peers lost of the reward, or with rare rewards the share that they earned."""
    found: Scores = defaultdict(dict)
    for row in read_rows(file):
        if row["regime"] == regime:
            mean, error = float(row["score_mean"]), float(row["score_standard_error"])
            lost = 1.0 - mean if regime == DENSE else mean
            found[row["table"]][row["method"]] = Score(lost, error)
    return dict(found)


def read_lost(file: Path) -> Scores:
    """What each policy lost of the reward, 1 − mean reward, from the summary of a sweep."""
    found: Scores = defaultdict(dict)
    for row in read_rows(file):
        decisions = int(row["observations"])
        mean = 1.0 - float(row["final_reward_mean"]) / decisions
        error = float(row["final_reward_standard_error"]) / decisions
        found[_table(row)][row["policy"]] = Score(mean, error)
    return dict(found)


def read_shares(file: Path) -> Scores:
    """The share of what can be earned beyond uniform choice: 1 − regret / regret of uniform choice.

    This is (mean expected reward − uniform) / (best − uniform), because regret is measured in
    expected rewards. The policy ``random`` stands for uniform choice.
    """
    rows = read_rows(file)
    uniform = {_table(row): float(row["final_mean"]) for row in rows if row["policy"] == RANDOM}
    found: Scores = defaultdict(dict)
    for row in rows:
        table = _table(row)
        if table in uniform and row["policy"] != RANDOM:
            mean = 1.0 - float(row["final_mean"]) / uniform[table]
            error = float(row["final_standard_error"]) / uniform[table]
            found[table][row["policy"]] = Score(mean, error)
    return dict(found)


def best_of(scores: Mapping[str, Score], regime: str, *starts: str) -> tuple[str, Score] | None:
    """The best of the methods whose names begin so, with its name; None if there is none."""
    chosen = {name: one for name, one in scores.items() if name.startswith(starts or ("",))}
    if not chosen:
        return None
    pick = min if regime == DENSE else max
    name = pick(chosen, key=lambda one: chosen[one].mean)
    return name, chosen[name]


def ratio(score: Score, reference: Score) -> Score:
    """The ratio of two means; the error of both is in that of the ratio, to first order."""
    if reference.mean == 0.0:
        return Score(math.inf if score.mean else 1.0, math.nan)
    value = score.mean / reference.mean
    relative = reference.error / reference.mean
    return Score(value, math.hypot(score.error / reference.mean, value * relative))


def read_rows(file: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with file.open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


def _table(row: Mapping[str, str]) -> str:
    """The name of a table without that of its package: chess for keel:chess."""
    return row["file"].partition(":")[2]
