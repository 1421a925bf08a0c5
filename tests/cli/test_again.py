"""Sweeps that are run again: only what changed is drawn."""

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


def test_policies_that_ignore_the_context_are_named(done, tmp_path):
    text = FILE.replace('kind = "bernoulli"', 'kind = "contextual"\ndimension = 2')
    text = text.replace('"rcp-submax"]', '"rcp-submax", "ucb1", "linucb"]')
    (tmp_path / "tiny.toml").write_text(text.replace("[2, 3]", "2"), encoding="utf-8")
    said = done("simulate", tmp_path / "tiny.toml", "--out", tmp_path, "--no-figures")
    assert "rcp-submax, ucb1 " in said.splitlines()[0]


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
        (1, ("--only", "policy=random"), 5),
        (2, ("--only", "policy=random"), 0),
        (3, (), 5),
        (4, (), 0),
    ):
        assert drawn(simulate, *more) == expected, number
    (directory / "panel-arms=2.png").unlink()
    assert drawn(simulate) == 1
    assert drawn(done, "plot", tmp_path / "tiny") == 5
