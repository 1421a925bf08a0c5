"""The file of off-policy estimates that figures are drawn from."""

import csv
from pathlib import Path

ESTIMATES = "estimates.csv"


def read_estimates(directory: Path) -> list[dict[str, str]]:
    """All rows of the file in a directory."""
    with (directory / ESTIMATES).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
