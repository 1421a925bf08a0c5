"""The tutorials that need a server or commands are followed, from the first block to the last."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from submax.cli import main

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"


def page(name):
    return (TUTORIALS / f"{name}.md").read_text(encoding="utf-8")


def blocks(text, *languages):
    return re.findall(rf"```({'|'.join(languages)})\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.needs("curl", "node")
@pytest.mark.slow
def test_a_bandit_behind_http(reader):
    said = [reader.follow(*block) for block in blocks(page("behind-http"), "sh", "python", "js")]
    declared, decided, visited, status = (one for one in said if one)
    assert '"name":"shop"' in declared
    assert re.search(r'"id":"visit-1","action":"\w+","propensity":0\.333\d+,"version":0', decided)
    assert '{"id":"visit-1","status":"accepted","repeated":false}' in decided
    assert re.search(r"show (plain|bold|playful)\nthe reward was accepted\n", visited)
    assert "602 decisions" in status
    for headline in ("plain", "bold", "playful"):
        assert headline in status


def run_commands(text, changes):
    """What the commands of a page print, run in this process, with fewer replicas."""
    said = ""
    for _, block in blocks(text, "sh"):
        for line in block.splitlines():
            if line.startswith("submax "):
                for given, small in changes.items():
                    line = line.replace(given, small)
                done = CliRunner().invoke(main, shlex.split(line)[1:])
                assert done.exit_code == 0, (line, done.output)
                said += done.stdout
    return said


@pytest.mark.slow
def test_the_paper_is_reproduced(tmp_path, monkeypatch):
    """The figures themselves are drawn by the tests of the command."""
    monkeypatch.chdir(tmp_path)
    changes = {"--replicas 500": "--replicas 5", "--replicas 20": "--replicas 2"}
    fewer = {"--jobs 1": "--jobs 1 --no-figures"}
    said = run_commands(page("reproduce-the-paper"), changes | fewer)
    assert "Expected reward over 5 environments" in said
    for name, lines in (("illustration", 7), ("bernoulli", 4)):
        rows = (tmp_path / "results" / name / "summary.csv").read_text().splitlines()
        assert len(rows) == lines


@pytest.mark.slow
def test_the_file_of_simulations_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page("simulate-and-compare")
    ((_, toml),) = blocks(text, "toml")
    Path("late.toml").write_text(toml)
    said = run_commands(text, {"late.toml": "late.toml --replicas 4 --no-figures"})
    assert "rcp-adaptive" in said
