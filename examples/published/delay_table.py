"""Table 1 of Chapelle and Li (2011): what delayed feedback costs Thompson sampling and UCB.

``python delay_table.py`` prints the table with the paper's numbers beside ours. The full size, a
million decisions in 20 replicas for seven delays, takes about 20 minutes of one core; try
``--observations 20000`` first. ``--csv FILE`` also writes our numbers into a file.

Reference: Chapelle and Li (2011), An Empirical Evaluation of Thompson Sampling, NIPS 24.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from item_policies import ItemPolicy, ItemThompson, ItemUCB
from news_items import NewsItems

import submax

DELAYS = (1, 3, 10, 32, 100, 316, 1000)
MATCHED = "TS with a matched prior"
"""The prior is the distribution from which items are drawn, Beta(4, 4)."""
POLICIES: dict[str, ItemPolicy] = {
    "UCB": ItemUCB(),
    "TS": ItemThompson(),
    MATCHED: ItemThompson(prior=4.0),
}
PUBLISHED = {
    "UCB": (24_145, 24_695, 25_662, 28_148, 37_141, 77_687, 226_220),
    "TS": (9_105, 9_199, 9_049, 9_451, 11_550, 21_594, 59_256),
}
PUBLISHED[MATCHED] = PUBLISHED["TS"]
"""The regret after a million decisions, mean of 100 repetitions, for each of the delays."""


class Cell(NamedTuple):
    """The regret of a policy with one delay: mean over replicas, and its standard error."""

    policy: str
    delay: int
    observations: int
    replicas: int
    regret: float
    error: float


def cells(
    observations: int,
    replicas: int,
    delays: Sequence[int] = DELAYS,
    policies: Sequence[str] = tuple(POLICIES),
    seed: int = 2011,
) -> Iterator[Cell]:
    """Simulate policies with several delays; all of them meet the same items.

    The longest delay, which is simulated fastest, is the first.
    """
    environment = NewsItems(decisions=observations)
    for delay in sorted(delays, reverse=True):
        for name in policies:
            trace = submax.simulate(
                environment,
                POLICIES[name],
                observations=observations,
                replicas=replicas,
                delay=submax.BatchedRewards(delay),
                seed=seed,
            )
            regret = trace.final_regret
            error = float(regret.std(ddof=1) / np.sqrt(replicas))
            yield Cell(name, delay, observations, replicas, float(regret.mean()), error)


def line(cell: Cell) -> str:
    """One line of the printed table."""
    ours = f"{cell.policy:<26}{cell.delay:>6}{cell.regret:>12,.0f} ±{cell.error:>6,.0f}"
    if cell.delay not in DELAYS or cell.observations != NewsItems.decisions:
        return ours
    return f"{ours}   paper {PUBLISHED[cell.policy][DELAYS.index(cell.delay)]:>8,}"


def main(words: Sequence[str] | None = None) -> None:
    """Print the table cell by cell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--observations", type=int, default=NewsItems.decisions)
    parser.add_argument("--replicas", type=int, default=20)
    parser.add_argument("--csv", type=Path, help="also write the numbers into this file")
    options = parser.parse_args(words)
    if options.csv:
        options.csv.write_text(",".join(Cell._fields) + "\n", encoding="utf-8")
    for cell in cells(options.observations, options.replicas):
        print(line(cell), flush=True)
        if options.csv:
            with options.csv.open("a", encoding="utf-8") as file:
                numbers = f"{cell.regret:.1f},{cell.error:.1f}"
                file.write(",".join(map(str, cell[:4])) + f",{numbers}\n")


if __name__ == "__main__":
    main()
