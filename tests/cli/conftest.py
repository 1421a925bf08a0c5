import csv
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

Rows = list[dict[str, str]]

SMALL = (
    *("reproduce", "bernoulli", "--only", "arms=10", "--only", "beta=9"),
    *("--only", "delay=500", "--only", "delay=1000", "--replicas", "4"),
)
"""18 policies under two delays: 36 cells."""


def _run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "submax", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="session")
def run() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    return _run


@pytest.fixture(scope="session")
def small() -> tuple[str, ...]:
    return SMALL


@pytest.fixture(scope="session")
def whole(tmp_path_factory) -> Rows:
    """What all cells come to if they run one after the other in one process."""
    out = tmp_path_factory.mktemp("whole")
    done = _run(*SMALL, "--jobs", "1", "--out", out)
    assert done.returncode == 0, done.stderr
    return _summary(out / "bernoulli")


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


def _summary(directory: Path) -> Rows:
    """Everything in summary.csv but the time it took."""
    with (directory / "summary.csv").open(encoding="utf-8", newline="") as file:
        return [
            {key: value for key, value in row.items() if not key.endswith("seconds")}
            for row in csv.DictReader(file)
        ]


@pytest.fixture
def summary() -> Callable[[Path], Rows]:
    return _summary


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
