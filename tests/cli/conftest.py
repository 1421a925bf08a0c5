import csv
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

Rows = list[dict[str, str]]


@pytest.fixture
def run() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    def command(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "submax", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return command


@pytest.fixture
def start() -> Callable[..., "subprocess.Popen[str]"]:
    def command(*arguments: str | Path) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "submax", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return command


@pytest.fixture
def summary() -> Callable[[Path], Rows]:
    """Everything in summary.csv but the time it took."""

    def read(directory: Path) -> Rows:
        with (directory / "summary.csv").open(encoding="utf-8", newline="") as file:
            return [
                {key: value for key, value in row.items() if not key.endswith("seconds")}
                for row in csv.DictReader(file)
            ]

    return read


@pytest.fixture
def wait_for_cells() -> Callable[[Path, int], list[Path]]:
    def wait(directory: Path, count: int) -> list[Path]:
        for _ in range(6000):
            found = sorted((directory / "cells").glob("*.npz"))
            if len(found) >= count:
                return found
            time.sleep(0.01)
        raise AssertionError(f"{directory} never held {count} cells")

    return wait
