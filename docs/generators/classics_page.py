"""Writes docs/results/classics.md: two classic experiments, our numbers beside the published ones.

The numbers come from the scripts in examples/published, which write the files that are read here:
``delay_table.py --csv docs/results/classics/delay.csv`` and ``three_arms.py --csv
docs/results/classics/three-arms.csv --figure docs/results/classics/three-arms.png``.
"""

import csv
import sys
from pathlib import Path

from markdown_tables import table

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "results" / "classics"
PAGE = ROOT / "docs" / "results" / "classics.md"

sys.path.append(str(ROOT / "examples" / "published"))

from delay_table import DELAYS, PUBLISHED  # noqa: E402

Rows = list[dict[str, str]]

HEAD = """# Two classic experiments, repeated

The examples in [examples/published](../../examples/published) repeat two experiments that many people know, so that you can see how a
published experiment becomes an environment, two policies and one call. This page is written from their results by
`docs/generators/classics_page.py`.

## What delayed feedback costs

Chapelle and Li (2011), *An Empirical Evaluation of Thompson Sampling*, NIPS 24, Table 1. There are 10 items; at each time, with
probability 10⁻³, one of them retires and is replaced. The success probability of an item comes from Beta(4, 4). Rewards come back only
every δ decisions. The numbers are the regret after 10⁶ decisions: ours ± one standard error over the replicas, and the paper's, a mean
of 100 repetitions without an error.
"""

DELAY_NOTES = """
The table is often remembered as the one for K = 10 and ε = 0.1. These are the settings of the paper's Figure 1, which has arms that do
not change; the paper's Table 1 has the changing items described above.

What the paper leaves open, and what we chose:

- **Whether a policy knows that an item is new.** Ours knows, because a recommender knows its own items: the statistics of a place
  begin anew, and a reward that comes back after its item has retired is not counted.
- **Which items retire.** One of the ten, each with the same probability, at most one after each decision.
- **What t is in the bound of UCB**, k/m + √(2 (k/m) ln(1/δ′) / m) + 2 ln(1/δ′) / m with δ′ = √(1/t): the number of all decisions so
  far, including those whose reward is awaited. We could read the table and the text of the paper in two transcripts, but not the
  formula, which we have from a published replication that cites the paper.
- **An item that was never pulled** is taken first by UCB. So under a delay of 1000 UCB shows a new item until the next feedback comes,
  about 500 decisions on average, whereas Thompson sampling spreads its decisions.
"""

ARMS_HEAD = """
## Greedy decisions and Thompson sampling with three arms

Russo, Van Roy, Kazerouni, Osband and Wen (2018), *A Tutorial on Thompson Sampling*, Figures 3.1 and 3.2a: arms with success
probabilities 0.9, 0.8 and 0.7, a uniform prior, 1000 periods. Greedy takes the arm with the highest posterior mean, and ties are broken
at random.

![Probability of each action, and regret of each period](classics/three-arms.png)

The tutorial shows curves and prints no numbers. So the numbers beside ours come from the authors' own classes
(github.com/iosband/ts_tutorial, commit f28d3bb, `finite_arm/agent_finite.py` and `env_finite.py`), which we ran for {runs} runs; the
tutorial and our numbers have 10,000. A share of {runs} runs has a standard error of at most {error:.3f}.
"""

ARMS_NOTES = """
Both say the same as the figure: greedy decisions settle within the first hundred periods, on the best arm in less than half of the
runs, and their regret then stays where it is; Thompson sampling begins with slightly more regret and has almost none after 1000 periods.
"""


def page() -> str:
    """Return the page as Markdown."""
    runs = 2000
    arms_head = ARMS_HEAD.format(runs=f"{runs:,}", error=0.5 / runs**0.5)
    delay = _delay_table(_rows("delay"))
    arms = _arms_table(_rows("three-arms"), _rows("three-arms-of-the-authors"))
    return "".join([HEAD, delay, DELAY_NOTES, arms_head, "\n", arms, ARMS_NOTES])


def _delay_table(rows: Rows) -> str:
    found = {(row["policy"], int(row["delay"])): row for row in rows}
    lines = [(str(delay), *_delay_cells(found, delay)) for delay in DELAYS]
    head = ("δ", "UCB", "UCB, paper", "TS", "TS, paper", "ratio", "ratio, paper")
    replicas = max(int(row["replicas"]) for row in rows)
    return f"Our numbers are means over {replicas} replicas.\n\n" + table(head, lines) + "\n"


def _delay_cells(found: dict[tuple[str, int], dict[str, str]], delay: int) -> list[str]:
    published = [PUBLISHED[name][DELAYS.index(delay)] for name in ("UCB", "TS")]
    ours = [found.get((name, delay)) for name in ("UCB", "TS")]
    if None in ours:
        shown, ratio = ["not run"] * 2, "not run"
    else:
        regrets = [float(row["regret"]) for row in ours if row]
        errors = [float(row["error"]) for row in ours if row]
        shown = [f"{one:,.0f} ± {error:,.0f}" for one, error in zip(regrets, errors, strict=True)]
        ratio = f"{regrets[0] / regrets[1]:.2f}"
    theirs = f"{published[0] / published[1]:.2f}"
    return [shown[0], f"{published[0]:,}", shown[1], f"{published[1]:,}", ratio, theirs]


def _arms_table(ours: Rows, theirs: Rows) -> str:
    names = ["action_1", "action_2", "action_3", "regret"]
    lines = []
    for mine, other in zip(ours, theirs, strict=True):
        period = f"{mine['policy']}, {mine['first']} to {mine['last']}"
        lines.append((period, *(f"{mine[name]} / {other[name]}" for name in names)))
    head = ("periods", "action 1 (0.9)", "action 2 (0.8)", "action 3 (0.7)", "regret of a period")
    return "Ours / the authors' code:\n\n" + table(head, lines) + "\n"


def _rows(name: str) -> Rows:
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
