"""What is lost if the units of a bandit are divided over k databases, each of which learns alone.

``python benchmarks/live/partitions.py --out partitions.csv`` simulates one of k parts, which has a
k-th of the decisions, for k from 1 to 64. All parts lose the same share of the reward on average,
so this is also the share that all of them lose together. Feedback comes a hundred times, at the
same times for every k, and the worlds are the same for every k.
"""

import argparse
import csv
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys

import numpy as np

import submax

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring.claim import print_table
from submax.environments.arms import Bernoulli
from submax.policies import make_policy
from submax.simulation.delays import BatchedRewards

PARTS = (1, 4, 16, 64)
DECISIONS = (64_000, 640_000)
"""Decisions of all parts together."""
STEPS = 100
"""How often feedback comes."""
REPLICAS = 50
ENVIRONMENTS = {
    "10 arms, mean reward 0.1": Bernoulli(10, 1, 9),
    "100 arms, mean reward 0.01": Bernoulli(100, 1, 99),
}


class Row(NamedTuple):
    """The regret of all parts together, in percent of the best reward, with its standard error."""

    environment: str
    decisions: int
    parts: int
    lost_percent: float
    standard_error: float


def main(words: Sequence[str] | None = None) -> None:
    """Simulate, print a table, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="file of the results")
    out = parser.parse_args(words).out
    rows = [
        lost(name, decisions, parts)
        for name in ENVIRONMENTS
        for decisions in DECISIONS
        for parts in PARTS
    ]
    texts = [
        (row.environment, *map(str, row[1:3]), *(f"{value:.3g}" for value in row[3:]))
        for row in rows
    ]
    print_table("Reward that is lost if parts learn alone", Row._fields, texts)
    if out is not None:
        with out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(Row._fields)
            writer.writerows(texts)


def lost(name: str, decisions: int, parts: int) -> Row:
    """The share of the best reward that all parts together do not earn."""
    each = decisions // parts
    trace = submax.simulate(
        ENVIRONMENTS[name],
        make_policy("rcp-adaptive"),
        observations=each,
        replicas=REPLICAS,
        delay=BatchedRewards(each // STEPS),
        seed=7,
        points=10,
    )
    regret = trace.accumulated_regret[:, -1]
    best = regret + trace.accumulated_reward[:, -1]
    # The ratio of means, because single worlds can have a best reward near zero.
    share = regret.sum() / best.sum()
    error = np.std(regret - share * best, ddof=1) / np.sqrt(len(regret)) / best.mean()
    return Row(name, decisions, parts, 100 * float(share), 100 * float(error))


if __name__ == "__main__":
    main()
