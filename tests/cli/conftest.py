import csv
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from submax.cli import main
from submax.simulation.meter import Meter, install

Rows = list[dict[str, str]]

SMALL = (
    *("reproduce", "bernoulli", "--only", "arms=10", "--only", "beta=9"),
    *("--only", "delay=500", "--only", "delay=1000", "--replicas", "4", "--no-figures"),
)
"""14 policies under two delays: 28 cells. Figures take longer than the cells."""


def _run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "submax", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


class Done(NamedTuple):
    """What a command left when it ended, named as by ``subprocess``."""

    returncode: int
    stdout: str
    stderr: str


class InThisProcess(Executor):
    """Do the work of a sweep here and now, since to start a worker takes seconds."""

    def submit(self, function: Callable[..., Any], /, *given: Any, **named: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(function(*given, **named))
        except Exception as error:
            future.set_exception(error)
        return future


@contextmanager
def _in_this_process(jobs: int, meter: Meter | None = None) -> Iterator[Executor]:
    install(meter)
    try:
        yield InThisProcess()
    finally:
        install(None)


def _run_here(*arguments: str | Path) -> Done:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("submax.cli.running.run.local_executor", _in_this_process)
        return _invoked(*arguments)


def _invoked(*arguments: str | Path) -> Done:
    found = CliRunner().invoke(main, [str(one) for one in arguments])
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return Done(found.exit_code, found.stdout, found.stderr)


@pytest.fixture(scope="session")
def run_here() -> Callable[..., Done]:
    """A command without a process of its own and without workers, in a fifth of the time."""
    return _run_here


@pytest.fixture(scope="session")
def run_with_workers() -> Callable[..., Done]:
    """A command without a process of its own, whose workers are processes."""
    return _invoked


@pytest.fixture
def unrendered(monkeypatch) -> None:
    """Figures are made, but not rendered, which takes longer; other tests look at the files."""

    def touch(figure: object, path: Path, **options: object) -> None:
        path.touch()

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", touch)


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
    done = _run_here(*SMALL, "--out", out)
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
