"""Figures 3.1 and 3.2a of Russo et al. (2018): greedy decisions and Thompson sampling, three arms.

``python three_arms.py`` prints how often each action is taken and the regret of single periods;
``--figure FILE`` draws the figures, and ``--csv FILE`` writes the printed numbers.

Reference: Russo, Van Roy, Kazerouni, Osband and Wen (2018), A Tutorial on Thompson Sampling,
Foundations and Trends in Machine Learning 11(1).
"""

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import submax
from submax.policies import PosteriorGreedy, Thompson

MEANS = (0.9, 0.8, 0.7)
POLICIES = {"greedy": PosteriorGreedy(1.0, 1.0), "thompson": Thompson(1.0, 1.0)}
PERIODS = 1000
TOGETHER = 2000
"""Replicas that are simulated at a time, to bound memory."""
WINDOWS = ((1, 10), (91, 100), (991, 1000))
"""The printed numbers are means over these periods, first and last."""

Floats = NDArray[np.float64]


class Row(NamedTuple):
    """How often each action was taken from one period to another, and the regret of a period."""

    policy: str
    first: int
    last: int
    action_1: float
    action_2: float
    action_3: float
    regret: float


def shares(policy: str, replicas: int, seed: int = 2018) -> Floats:
    """Return the share of replicas that take each action in each period, ``[periods, actions]``."""
    taken = np.zeros((PERIODS, len(MEANS)))
    for block, begin in enumerate(range(0, replicas, TOGETHER)):
        trace = submax.simulate(
            submax.Bernoulli.of(MEANS),
            POLICIES[policy],
            observations=PERIODS,
            replicas=min(TOGETHER, replicas - begin),
            seed=[seed, block],
            points=None,
        )
        chosen = trace.actions[..., 0]
        taken += np.stack([(chosen == arm).sum(axis=0) for arm in range(len(MEANS))], axis=1)
    return taken / replicas


def regret(shares: Floats) -> Floats:
    """Return the expected regret of every period, ``[periods]``."""
    return shares @ (max(MEANS) - np.array(MEANS))


def rows(policy: str, shares: Floats) -> list[Row]:
    """Return the means over each of the windows."""
    found = []
    for first, last in WINDOWS:
        part = shares[first - 1 : last]
        found.append(Row(policy, first, last, *part.mean(axis=0), float(regret(part).mean())))
    return found


def draw(found: dict[str, Floats], path: Path) -> None:
    """Draw both figures beside each other."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
    periods = np.arange(1, PERIODS + 1)
    for panel, (policy, values) in zip(panels, found.items(), strict=False):
        for arm, line in enumerate(values.T):
            panel.plot(periods, line, label=f"action {arm + 1} ({MEANS[arm]})")
        panel.set(title=policy, xlabel="period", ylabel="probability of the action", ylim=(0, 1))
        panel.legend()
    for policy, values in found.items():
        panels[2].plot(periods, regret(values), label=policy)
    panels[2].set(title="regret", xlabel="period", ylabel="regret of a period", ylim=(0, None))
    panels[2].legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(words: Sequence[str] | None = None) -> None:
    """Print the table, and write the files that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicas", type=int, default=10_000)
    parser.add_argument("--figure", type=Path, help="draw the figures into this file")
    parser.add_argument("--csv", type=Path, help="write the numbers into this file")
    options = parser.parse_args(words)
    found = {policy: shares(policy, options.replicas) for policy in POLICIES}
    table = [row for policy, values in found.items() for row in rows(policy, values)]
    for row in table:
        numbers = "  ".join(f"{number:.4f}" for number in row[3:])
        print(f"{row.policy:<10}{row.first:>4} to {row.last:>4}  {numbers}")
    if options.csv:
        with options.csv.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(Row._fields)
            writer.writerows([*row[:3], *(f"{number:.4f}" for number in row[3:])] for row in table)
    if options.figure:
        draw(found, options.figure)


if __name__ == "__main__":
    main()
