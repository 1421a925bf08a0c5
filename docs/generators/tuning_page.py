"""Write the tables of docs/results/tuning.md from docs/results/tuning: ``make docs``."""

import csv
import re
from pathlib import Path

from markdown_tables import table
from published import RESULTS, Rows

PAGE = Path(__file__).parents[1] / "results" / "tuning.md"
PROBLEMS = ("contextual", "combinatorial", "contextual-rivals", "combinatorial-rivals")


def with_tables(text: str) -> str:
    """Return the page with its tables replaced; they are between comments with their names."""
    for problem in PROBLEMS:
        rows = _rows(problem)
        for name, made in (("chosen", _chosen(rows)), ("candidates", _candidates(rows))):
            mark = f"<!-- {problem}-{name} -->"
            pattern = re.compile(f"{mark}.*?{mark}", re.DOTALL)
            text = pattern.sub(f"{mark}\n\n{made}\n\n{mark}", text)
    return text


def _rows(problem: str) -> Rows:
    with (RESULTS / "tuning" / f"{problem}.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["method"] != "random"]


def _chosen(rows: Rows) -> str:
    """The best candidate of every method, and its lead over the second."""
    by_method: dict[str, Rows] = {}
    for row in sorted(rows, key=lambda row: float(row["score"])):
        by_method.setdefault(row["method"], []).append(row)
    body = (
        (
            method,
            str(len(group)),
            f"**{group[0]['score']}**",
            group[0]["parameters"],
            group[0]["round"],
            group[1]["score"],
            f"{sum(float(row['score']) for row in group) / len(group):.3f}",
        )
        for method, group in sorted(by_method.items(), key=lambda item: item[1][0]["score"])
    )
    head = ("method", "candidates", "score", "parameters", "round", "second", "mean of all")
    return table(head, body)


def _candidates(rows: Rows) -> str:
    """All candidates, method by method, the best first."""
    ordered = sorted(rows, key=lambda row: (row["method"], float(row["score"])))
    keys = ("method", "round", "parameters", "score", "regrets")
    return table(keys, (tuple(row[key] for key in keys) for row in ordered))


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
