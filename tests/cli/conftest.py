import csv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from server_process import start_server  # noqa: F401 - pytest finds fixtures by their names here

import submax
from submax.cli import main
from submax.testing import ManualClock

RAILS = {"holdout": 0.5, "baseline": "A", "control": "B", "control_share": 0.3}
"""Of the bandit that most commands of operators are tried on."""


RENDERED = "panel-arms=10.png"


def first_arm() -> str:
    """The code of a policy in one file, from the guide."""
    guide = Path(__file__).parents[2] / "docs" / "how-to" / "experiments.md"
    blocks = guide.read_text(encoding="utf-8").split("```")
    (code,) = [block for block in blocks if block.startswith("python\n# first_arm.py")]
    return code.removeprefix("python\n")


def invoke(*arguments: object) -> Result:
    """A command without a process of its own and without workers, in a fifth of the time."""
    with pytest.MonkeyPatch.context() as patch:
        # In this process, since to start a worker takes seconds.
        patch.setattr("submax.cli.running.local_executor", lambda jobs: ThreadPoolExecutor(1))
        return invoke_with_workers(*arguments)


def invoke_with_workers(*arguments: object) -> Result:
    """A command without a process of its own, whose workers are processes."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "Traceback" not in result.output
    return result


def done(*arguments: object) -> str:
    """A command that ends well; returns what it printed."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: object, status: int = 2) -> str:
    """A command that prints nothing but an error; returns the error."""
    result = invoke(*arguments)
    assert result.exit_code == status, result.output
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert result.stdout == ""
    return result.stderr


@pytest.fixture
def unrendered(monkeypatch) -> None:
    """Figures are made, but only one of them is rendered, which takes longer."""
    from matplotlib.figure import Figure

    render = Figure.savefig

    def savefig(figure: Figure, path: Path, **options: object) -> None:
        render(figure, path, **options) if path.name == RENDERED else path.touch()

    monkeypatch.setattr(Figure, "savefig", savefig)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
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
    """The file of a bandit with guard rails, 80 decisions with rewards, and a version."""
    path, clock = tmp_path_factory.mktemp("shop") / "shop.db", ManualClock()
    options = {"guard_rails": RAILS, "reward_wait": 10, "background": False, "clock": clock}
    with submax.open(path, name="shop", actions=["A", "B"], **options) as bandit:
        made = bandit.decide_many([{"id": f"d{number}"} for number in range(80)])
        bandit.reward_many([{"id": one.id, "value": float(one.action == "B")} for one in made])
        clock.now += 11
        bandit.refit()
        copy = path.with_name("copy.db")
        bandit.store.backup(copy)
    return copy.read_bytes()


@pytest.fixture
def file(shop, tmp_path, monkeypatch) -> Path:
    """The store of all commands that name no other."""
    path = tmp_path / "shop.db"
    path.write_bytes(shop)
    monkeypatch.setenv("SUBMAX_STORE", str(path))
    return path


def summary(directory: Path, name: str = "summary.csv") -> list[dict[str, str]]:
    """The rows of a table of results, without the time that they took."""
    with (directory / name).open(encoding="utf-8", newline="") as file:
        return [
            {key: value for key, value in row.items() if not key.endswith("seconds")}
            for row in csv.DictReader(file)
        ]


def files(folder: Path) -> list[str]:
    """The names of the files of a folder, without those that a store has beside its own."""
    ignored = ("-wal", "-shm", ".lock")
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(ignored))
