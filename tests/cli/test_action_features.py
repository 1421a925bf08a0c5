"""Features of actions on the command line."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

from submax.cli import main
from submax.schema.learned import Learned

FEATURES = "action,price,genre\nA,1,rock\nB,2,jazz\nC,3,rock\n"
SMALL = json.dumps(
    {
        "kind": "posterior-submax",
        "name": "small",
        "estimator": {"kind": "bayesian-features", "features": 8},
    }
)


def invoke(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def done(*arguments):
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments):
    """One sentence, and the status of wrong input."""
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert "Error: " in result.stderr
    assert result.stdout == ""
    return result.stderr


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """One in which there is a log."""
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


def test_actions_are_described_by_a_file(folder):
    (folder / "songs.csv").write_text(FEATURES)
    options = ["log.csv", "--action-features", "songs.csv"]
    done("learn", *options, "--policy", SMALL, "--share", 0.5)
    learned = Learned.read("policy.safetensors")
    assert learned.schema.menu.features["B"] == {"price": 2.0, "genre": "jazz"}
    assert "small" in done("evaluate", *options, "--policy", SMALL, "--estimator", "snips")
    done("evaluate", "log.csv", "--policy", "policy.safetensors", "--estimator", "snips")


def test_actions_are_described_in_a_declaration(folder):
    table = 'actions = ["A", "B", "C"]\n[action_features]\n'
    rows = "".join(f"{name} = {{ price = {place} }}\n" for place, name in enumerate("ABC"))
    (folder / "page.toml").write_text(table + rows)
    done("learn", "log.csv", "--policy", "linucb", "--declare", "page.toml")
    found = Learned.read("policy.safetensors").schema.menu.features
    assert found == {"A": {"price": 0.0}, "B": {"price": 1.0}, "C": {"price": 2.0}}
    (folder / "songs.csv").write_text(FEATURES)
    both = ["--declare", "page.toml", "--action-features", "songs.csv"]
    assert "leave one of the two out" in refused("learn", "log.csv", "--policy", "linucb", *both)


def test_a_file_that_describes_too_few_actions_is_refused(folder):
    (folder / "songs.csv").write_text("action,price\nA,1\nB,2\n")
    options = ["--policy", "linucb", "--action-features"]
    assert "the choice 'C' is missing" in refused("learn", "log.csv", *options, "songs.csv")
    assert "there is no file" in refused("learn", "log.csv", *options, "none.csv")
