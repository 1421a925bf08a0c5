"""Writes docs/results/classics.md: two classic experiments, our numbers beside the published ones.

The text is docs/results/classics/template.txt. The numbers come from the scripts in
examples/published, which write the files that are read here: ``delay_table.py --csv
docs/results/classics/delay.csv`` and ``three_arms.py --csv docs/results/classics/three-arms.csv
--figure docs/results/classics/three-arms.png``.
"""

import csv
import sys
from pathlib import Path
from typing import NamedTuple

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
    text = (FOLDER / "template.txt").read_text(encoding="utf-8")
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
        "with the number of decisions. The ten items of the start weigh more in a short run, so "
        "that these numbers are up to 9 % too high."
    )


def _delay_line(found: dict[tuple[str, int], dict[str, str]], delay: int) -> tuple[str, ...]:
    ours = {
        name: _scaled(found[name, delay])
        for name in ("UCB", "TS", MATCHED)
        if (name, delay) in found
    }
    published = {name: PUBLISHED[name][DELAYS.index(delay)] for name in ("UCB", "TS")}
    ratio = f"{ours['UCB'].regret / ours['TS'].regret:.2f}" if {"UCB", "TS"} <= set(ours) else ""
    return (
        str(delay),
        _shown(ours.get("UCB")),
        f"{published['UCB']:,}",
        _shown(ours.get("TS")),
        _shown(ours.get(MATCHED)),
        f"{published['TS']:,}",
        ratio or "not run",
        f"{published['UCB'] / published['TS']:.2f}",
    )


class Scaled(NamedTuple):
    """Regret and error, multiplied as if a run had all decisions; ``full`` if it had them."""

    regret: float
    error: float
    full: bool


def _scaled(row: dict[str, str]) -> Scaled:
    factor = FULL / int(row["observations"])
    return Scaled(factor * float(row["regret"]), factor * float(row["error"]), factor == 1)


def _shown(cell: Scaled | None) -> str:
    if cell is None:
        return "not run"
    return f"{cell.regret:,.0f} ± {cell.error:,.0f}{'' if cell.full else '*'}"


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
