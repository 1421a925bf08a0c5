"""Off-policy estimates, read from the file that an evaluation or experiment has written."""

import csv
from pathlib import Path

ESTIMATES = "estimates.csv"


def read_estimates(directory: Path) -> list[dict[str, str]]:
    """The rows of the file ``estimates.csv`` in a directory."""
    with (directory / ESTIMATES).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
