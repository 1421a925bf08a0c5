import csv
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from server_process import start_server  # noqa: F401 - fixtures
from waiting import wait_until

import submax
from submax.cli import main
from submax.testing import ManualClock

Rows = list[dict[str, str]]

RAILS = {"holdout": 0.5, "baseline": "A", "control": "B", "control_share": 0.3}
"""Of the bandit that most commands of operators are tried on."""

POLICIES = (
    *("random", "epsilon-greedy-0.01", "epsilon-greedy-0.05", "epsilon-greedy-0.1", "ucb1"),
    *("thompson-1-1", "rcp-marginalized", "rcp-optimistic", "rcp-optimized", "rcp-submax"),
)
SMALL = (
    *("reproduce", "bernoulli", "--only", "arms=10", "--only", "beta=9"),
    *("--only", "delay=500", "--only", "delay=1000", "--replicas", "4", "--no-figures"),
    *(word for policy in POLICIES for word in ("--only", f"policy={policy}")),
)
"""Figures take longer than the cells."""


def _one_thread(jobs: int) -> ThreadPoolExecutor:
    """Do the work of a sweep in this process, since to start a worker takes seconds."""
    return ThreadPoolExecutor(1)


def _invoke(*arguments: object) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("submax.cli.running.local_executor", _one_thread)
        return _invoke_with_workers(*arguments)


def _invoke_with_workers(*arguments: object) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "Traceback" not in result.output
    return result


@pytest.fixture(scope="session")
def invoke() -> Callable[..., Result]:
    """A command without a process of its own and without workers, in a fifth of the time."""
    return _invoke


@pytest.fixture(scope="session")
def invoke_with_workers() -> Callable[..., Result]:
    """A command without a process of its own, whose workers are processes."""
    return _invoke_with_workers


@pytest.fixture(scope="session")
def done() -> Callable[..., str]:
    """A command that ends well; returns what it printed."""

    def done(*arguments: object) -> str:
        result = _invoke(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    return done


@pytest.fixture(scope="session")
def refused() -> Callable[..., str]:
    """A command that prints nothing but an error; returns the error."""

    def refused(*arguments: object, status: int = 2) -> str:
        result = _invoke(*arguments)
        assert result.exit_code == status, result.output
        assert result.stderr.splitlines()[-1].startswith("Error: ")
        assert result.stdout == ""
        return result.stderr

    return refused


@pytest.fixture
def render_only(monkeypatch) -> Callable[[str], None]:
    """Figures in other files are made, but not rendered, which takes longer."""
    from matplotlib.figure import Figure

    render = Figure.savefig

    def render_only(pattern: str) -> None:
        def savefig(figure: Figure, path: Path, **options: object) -> None:
            render(figure, path, **options) if path.match(pattern) else path.touch()

        monkeypatch.setattr(Figure, "savefig", savefig)

    return render_only


@pytest.fixture
def unrendered(render_only) -> None:
    render_only("none")


@pytest.fixture
def log_folder(tmp_path, monkeypatch) -> Path:
    """The folder of the commands, in which there is a log of 400 decisions."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    action = rng.integers(3, size=400)
    with (tmp_path / "log.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["action", "reward", "propensity", "context_age"])
        for one in action:
            reward = int(rng.random() < 0.2 + 0.2 * one)
            writer.writerow(["ABC"[one], reward, 1 / 3, rng.normal(40, 10)])
    return tmp_path


@pytest.fixture(scope="session")
def shop(tmp_path_factory) -> bytes:
    """The file of a bandit with guard rails and a version."""
    path, clock = tmp_path_factory.mktemp("shop") / "shop.db", ManualClock()
    with submax.open(
        path,
        name="shop",
        actions=["A", "B"],
        guard_rails=RAILS,
        reward_wait=10,
        background=False,
        clock=clock,
    ) as bandit:
        made = bandit.decide_many([{}] * 80)
        bandit.reward_many([{"id": one.id, "value": float(one.action == "B")} for one in made])
        clock.now += 11
        bandit.refit()
        copy = path.with_name("copy.db")
        bandit.store.backup(copy)
    return copy.read_bytes()


@pytest.fixture
def start() -> Callable[..., "subprocess.Popen[str]"]:
    """Starts a command in a process of its own, as people start it."""

    def command(*arguments: object) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "submax", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return command


@pytest.fixture(scope="session")
def whole(done, summary, tmp_path_factory) -> Rows:
    """What all cells come to if they run one after the other in one process."""
    out = tmp_path_factory.mktemp("whole")
    done(*SMALL, "--out", out)
    return summary(out / "bernoulli")


@pytest.fixture(scope="session")
def summary() -> Callable[[Path], Rows]:
    """Everything in summary.csv but the time it took."""

    def summary(directory: Path) -> Rows:
        with (directory / "summary.csv").open(encoding="utf-8", newline="") as file:
            return [
                {key: value for key, value in row.items() if not key.endswith("seconds")}
                for row in csv.DictReader(file)
            ]

    return summary


@pytest.fixture
def wait_for_cells() -> Callable[[Path, int], list[Path]]:
    def wait(directory: Path, count: int) -> list[Path]:
        def found() -> list[Path]:
            cells = sorted((directory / "cells").glob("*.msgpack"))
            return cells if len(cells) >= count else []

        return wait_until(found)

    return wait
