"""Sweeps that are run again: replicas are added, and only what changed is drawn."""

import json

import pyarrow.parquet as pq
import pytest

FILE = """
observations = 4e1
replicas = 3
points = 10
policies = ["random", "rcp-submax"]
[environment]
kind = "bernoulli"
arms = [2, 3]
[delay]
kind = "batched-rewards"
size = 10
"""


@pytest.fixture
def simulate(done, tmp_path):
    """Runs the experiment of the file, with further options, into the same directory."""
    (tmp_path / "tiny.toml").write_text(FILE, encoding="utf-8")
    return lambda *options: done("simulate", tmp_path / "tiny.toml", "--out", tmp_path, *options)


def finals(directory):
    return pq.read_table(directory / "finals.parquet").to_pylist()


def test_policies_that_ignore_the_context_are_named(done, tmp_path):
    text = FILE.replace('kind = "bernoulli"', 'kind = "contextual"\ndimension = 2')
    text = text.replace('"rcp-submax"]', '"rcp-submax", "ucb1", "linucb"]')
    (tmp_path / "tiny.toml").write_text(text.replace("[2, 3]", "2"), encoding="utf-8")
    said = done("simulate", tmp_path / "tiny.toml", "--out", tmp_path, "--no-figures")
    assert "rcp-submax, ucb1 " in said.splitlines()[0]


def test_replicas_are_added_and_the_first_ones_stay_as_they_are(simulate, refused, tmp_path):
    directory = tmp_path / "tiny"
    simulate("--no-figures")
    few = finals(directory)
    simulate("--no-figures", "--replicas", 5)
    many = finals(directory)
    assert len(many) == 5 * 4
    assert [row for row in many if row["replica"] < 3] == few
    by_policy = {
        name: [row["reward"] for row in many if row["policy"] == name and row["replica"] > 2]
        for name in ("random", "rcp-submax")
    }
    assert len(set(map(tuple, by_policy.values()))) == 2
    manifest = json.loads((directory / "manifest.json").read_text())
    assert manifest["replica_blocks"] == [3, 2]
    assert manifest["specification"]["replicas"] == 5
    assert "4 of 4 cells" in simulate("--no-figures", "--replicas", 5)
    assert finals(directory) == many
    assert "--replicas 5" in refused("simulate", tmp_path / "tiny.toml", "--out", tmp_path)


def test_curves_of_added_replicas_are_those_of_all_replicas(simulate, tmp_path):
    for replicas in (3, 7):
        simulate("--no-figures", "--replicas", replicas)
    curves = pq.read_table(tmp_path / "tiny" / "results.parquet").to_pylist()
    rows = finals(tmp_path / "tiny")
    for row in [row for row in curves if row["step"] == 40]:
        mine = [
            one["regret"]
            for one in rows
            if one["policy"] == row["policy"] and one["arms"] == row["arms"]
        ]
        assert len(mine) == 7
        assert row["regret_mean"] == pytest.approx(sum(mine) / 7)
        assert min(mine) - 1e-5 <= row["regret_q025"] <= row["regret_q975"] <= max(mine) + 1e-5


@pytest.mark.usefixtures("unrendered")
def test_only_what_changed_is_drawn(simulate, done, tmp_path):
    directory = tmp_path / "tiny" / "figures"

    def drawn(command, *arguments):
        """How many figures a command draws, each in two files."""
        before = {path: path.stat().st_mtime_ns for path in directory.glob("*.p*")}
        command(*arguments)
        now = {path: path.stat().st_mtime_ns for path in directory.glob("*.p*")}
        return sum(before.get(path) != time for path, time in now.items()) / 2

    for number, more, expected in (
        (1, ("--only", "policy=random"), 4),
        (2, ("--only", "policy=random"), 0),
        (3, (), 4),
        (4, (), 0),
    ):
        assert drawn(simulate, *more) == expected, number
    (directory / "panel-arms=2.png").unlink()
    assert drawn(simulate) == 1
    assert drawn(done, "plot", tmp_path / "tiny") == 4
