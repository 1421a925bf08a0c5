"""Both rounds of a tuning in one table with the column ``round``, as docs/results/tuning has them.

`split` puts the rows of such a table where `candidate_runs.tune` goes on from; `join` is its
inverse. So a tuning that was stopped and published can be finished on another machine.
"""

import csv
from pathlib import Path

from candidate_runs import COLUMNS

ROUNDS = (1, 2)


def round_file(folder: Path, problem: str, number: int) -> Path:
    """Return the file of one round."""
    return folder / f"{problem}-{number}.csv"


def split(table: Path, folder: Path, problem: str) -> None:
    """Write the rows of a joined table to one file for each round, unless there is such a file."""
    rows = rows_of(table)
    for number in ROUNDS:
        file = round_file(folder, problem, number)
        known = [row for row in rows if row["round"] == str(number)]
        if known and not file.exists():
            _write(file, [{name: row[name] for name in COLUMNS} for row in known], COLUMNS)


def join(folder: Path, problem: str) -> Path:
    """Write the rows of all rounds that were begun to one table, and return its file."""
    found = [
        {"round": str(number), **row}
        for number in ROUNDS
        for row in rows_of(round_file(folder, problem, number))
    ]
    file = folder / f"{problem}.csv"
    _write(file, found, ("round", *COLUMNS))
    return file


def rows_of(file: Path) -> list[dict[str, str]]:
    """Return the rows of a table; none if there is no such file."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


def _write(file: Path, rows: list[dict[str, str]], columns: tuple[str, ...]) -> None:
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
