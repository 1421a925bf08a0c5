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
kind = "batch-flush"
size = 10
"""


def touched(directory, policies, figure):
    """Stands for the drawing of a figure, which takes a second."""
    (directory / "figures").mkdir(exist_ok=True)
    for ending in ("png", "pdf"):
        (directory / "figures" / f"{figure.name}.{ending}").touch()


@pytest.fixture(scope="module", autouse=True)
def _quick_drawing():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("submax.cli.running.run._draw", touched)
        yield


@pytest.fixture(scope="module")
def folder(run_here, tmp_path_factory):
    folder = tmp_path_factory.mktemp("again")
    (folder / "tiny.toml").write_text(FILE, encoding="utf-8")
    done = run_here("simulate", folder / "tiny.toml", "--out", folder / "few")
    assert done.returncode == 0, done.stderr
    return folder


def test_policies_that_ignore_the_context_are_named(run_here, tmp_path):
    text = FILE.replace('kind = "bernoulli"', 'kind = "contextual"\ndimension = 2')
    text = text.replace('"rcp-submax"]', '"rcp-submax", "ucb1", "linucb"]')
    (tmp_path / "tiny.toml").write_text(text.replace("[2, 3]", "2"), encoding="utf-8")
    done = run_here("simulate", tmp_path / "tiny.toml", "--out", tmp_path, "--no-figures")
    assert done.returncode == 0, done.stderr
    assert "tiny: the policies rcp-submax, ucb1 do not look at the context" in done.stdout


def finals(directory):
    return pq.read_table(directory / "finals.parquet").to_pylist()


def test_replicas_are_added_and_the_first_ones_stay_as_they_are(run_here, folder):
    few = finals(folder / "few" / "tiny")
    done = run_here("simulate", folder / "tiny.toml", "--out", folder / "few", "--replicas", 5)
    assert done.returncode == 0, done.stderr
    assert "2 replicas are added to 3" in done.stdout
    many = finals(folder / "few" / "tiny")
    assert len(many) == 5 * 4
    assert [row for row in many if row["replica"] < 3] == few
    by_policy = {
        name: [row["reward"] for row in many if row["policy"] == name and row["replica"] > 2]
        for name in ("random", "rcp-submax")
    }
    assert len(set(map(tuple, by_policy.values()))) == 2
    manifest = json.loads((folder / "few" / "tiny" / "manifest.json").read_text())
    assert manifest["replica_blocks"] == [3, 2]
    assert manifest["specification"]["replicas"] == 5
    again = run_here("simulate", folder / "tiny.toml", "--out", folder / "few", "--replicas", 5)
    assert "4 of 4 cells are already finished" in again.stdout
    assert finals(folder / "few" / "tiny") == many
    fewer = run_here("simulate", folder / "tiny.toml", "--out", folder / "few")
    assert fewer.returncode == 2
    assert "replicas = 5 instead of 3" in fewer.stderr
    assert "give --replicas 5 or more" in fewer.stderr


def test_curves_of_added_replicas_are_those_of_all_replicas(run_here, folder):
    target = folder / "curves"
    for replicas in (3, 7):
        run_here("simulate", folder / "tiny.toml", "--out", target, "--replicas", replicas)
    curves = pq.read_table(target / "tiny" / "results.parquet").to_pylist()
    rows = finals(target / "tiny")
    for row in [row for row in curves if row["step"] == 40]:
        mine = [
            one["regret"]
            for one in rows
            if one["policy"] == row["policy"] and one["arms"] == row["arms"]
        ]
        assert len(mine) == 7
        assert row["regret_mean"] == pytest.approx(sum(mine) / 7)
        assert min(mine) - 1e-5 <= row["regret_q025"] <= row["regret_q975"] <= max(mine) + 1e-5


def test_only_what_changed_is_drawn(run_here, folder):
    target = folder / "drawn"
    only = ("--only", "policy=random")
    for number, more, drawn in ((1, only, 4), (2, only, 0), (3, (), 4), (4, (), 0)):
        done = run_here("simulate", folder / "tiny.toml", "--out", target, *more)
        assert f"figures to draw: {drawn}." in done.stdout, number
    (target / "tiny" / "figures" / "panel-arms=2.png").unlink()
    done = run_here("simulate", folder / "tiny.toml", "--out", target)
    assert "figures to draw: 1." in done.stdout
    assert "figures to draw: 4." in run_here("plot", target / "tiny").stdout
