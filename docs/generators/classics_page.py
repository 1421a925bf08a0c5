"""Writes docs/results/classics.md: two classic experiments, our numbers beside the published ones.

The text is docs/results/classics/template.md. The numbers come from the scripts in
examples/published, which write the files that are read here: ``delay_table.py --csv
docs/results/classics/delay.csv`` and ``three_arms.py --csv docs/results/classics/three-arms.csv
--figure docs/results/classics/three-arms.png``.
"""

import csv
import sys
from pathlib import Path

from markdown_tables import table

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "results" / "classics"
PAGE = ROOT / "docs" / "results" / "classics.md"

sys.path.append(str(ROOT / "examples" / "published"))

from delay_table import DELAYS, MATCHED, PUBLISHED  # noqa: E402

Rows = list[dict[str, str]]
FULL = 1_000_000
"""Decisions of a full run, as in the paper."""


def page() -> str:
    """Return the page as Markdown: the template with the tables in their places."""
    theirs = _rows("three-arms-of-the-authors")
    runs = int(theirs[0]["runs"])
    parts = {
        "delay": _delay_table(_rows("delay")),
        "runs": f"{runs:,}",
        "error": f"{0.5 / runs**0.5:.3f}",
        "arms": _arms_table(_rows("three-arms"), theirs),
    }
    text = (FOLDER / "template.md").read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"{{{{{name}}}}}", part)
    return text


def _delay_table(rows: Rows) -> str:
    found = {(row["policy"], int(row["delay"])): row for row in rows}
    head = ("δ", "UCB", "paper", "TS", MATCHED, "paper", "UCB / TS", "paper")
    lines = [_delay_line(found, delay) for delay in DELAYS]
    return f"{table(head, lines)}\n\n{_remark(rows)}"


def _remark(rows: Rows) -> str:
    """Say how many replicas there are, and which cells are shorter runs."""
    replicas = ", ".join(sorted({row["replicas"] for row in rows}))
    text = f"Our numbers are means over {replicas} replicas."
    short = [row for row in rows if int(row["observations"]) < FULL]
    if not short:
        return text
    lengths = sorted({int(row["observations"]) for row in short})
    return (
        f"{text} Those with a star come from runs of {', '.join(f'{one:,}' for one in lengths)} "
        "decisions and are multiplied accordingly: with items that come and go, the regret grows "
        "with the number of decisions."
    )


def _delay_line(found: dict[tuple[str, int], dict[str, str]], delay: int) -> tuple[str, ...]:
    ours = {name: _scaled(found[name, delay]) for name in ("UCB", "TS", MATCHED)}
    published = {name: PUBLISHED[name][DELAYS.index(delay)] for name in ("UCB", "TS")}
    star = "*" if int(found["TS", delay]["observations"]) < FULL else ""
    shown = {name: f"{mean:,.0f} ± {error:,.0f}{star}" for name, (mean, error) in ours.items()}
    return (
        str(delay),
        shown["UCB"],
        f"{published['UCB']:,}",
        shown["TS"],
        shown[MATCHED],
        f"{published['TS']:,}",
        f"{ours['UCB'][0] / ours['TS'][0]:.2f}",
        f"{published['UCB'] / published['TS']:.2f}",
    )


def _scaled(row: dict[str, str]) -> tuple[float, float]:
    """Return regret and error of a row, as if it had all decisions."""
    factor = FULL / int(row["observations"])
    return factor * float(row["regret"]), factor * float(row["error"])


def _arms_table(ours: Rows, theirs: Rows) -> str:
    names = ["action_1", "action_2", "action_3", "regret"]
    lines = []
    for mine, other in zip(ours, theirs, strict=True):
        period = f"{mine['policy']}, {mine['first']} to {mine['last']}"
        lines.append((period, *(f"{mine[name]} / {other[name]}" for name in names)))
    head = ("periods", "action 1 (0.9)", "action 2 (0.8)", "action 3 (0.7)", "regret of a period")
    return "Ours / the authors' code:\n\n" + table(head, lines)


def _rows(name: str) -> Rows:
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
