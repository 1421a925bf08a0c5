"""Pages with commands and servers are followed, block by block, in the order of a reader."""

import json
import re
import shlex
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from page_blocks import PAGES, blocks, texts

from submax.cli import main

pytestmark = pytest.mark.slow
FROM_A_LOG, LOGS, BEST_ARM = (
    f"docs/{name}.md" for name in ("tutorials/from-a-log", "how-to/logs", "how-to/best-arm")
)
SERVER = [f"docs/how-to/{name}.md" for name in ("server", "deploy", "monitor")]
"""Each page goes on where the one before it ended."""


def follow(reader, page, *languages):
    return [reader.follow(*block) for block in blocks(page, *languages)]


@pytest.mark.needs("curl", "nginx", "openssl")
def test_a_newcomer_follows_the_pages_of_the_server(reader, tmp_path):
    printed = [text for page in SERVER for text in follow(reader, page, "sh", "python")]
    said = "".join(printed)
    # The trial: a decision, its reward, the log, and both clients.
    assert '"id":"visit-1","status":"accepted","repeated":false' in said
    (row,) = pq.read_table(tmp_path / "log.parquet").to_pylist()
    assert (row["id"], row["reward"], row["status"]) == ("visit-1", 1.0, "pending")
    assert "accepted\n" in printed
    assert "{'accepted'}\n" in printed
    # In production: the reward through the proxy, the metrics, the audit.
    assert '"id":"visit-2","status":"accepted","repeated":false' in said
    assert "holdout" in said
    assert 'submax_requests_total{operation="reward",status="200"}' in said
    assert re.search(r"operator \(\w+\)  add-key", said)
    assert "for pages of https://shop.example" in said
    log = [json.loads(line) for line in (tmp_path / "server.log").read_text().splitlines()]
    assert log[0]["event"] == "serving"


@pytest.mark.needs("curl", "node")
def test_a_bandit_behind_http(reader):
    said = follow(reader, "docs/tutorials/behind-http.md", "sh", "python", "js")
    declared, decided, visited, status = (one for one in said if one)
    assert '"name":"shop"' in declared
    assert re.search(r'"id":"visit-1","action":"\w+","propensity":0\.333\d+,"version":0', decided)
    assert '{"id":"visit-1","status":"accepted","repeated":false}' in decided
    assert re.search(r"show (plain|bold|playful)\nthe reward was accepted\n", visited)
    assert all(word in status for word in ("602 decisions", "plain", "bold", "playful"))


@pytest.mark.needs("curl")
def test_from_a_log_to_a_served_policy(reader, tmp_path):
    said = follow(reader, FROM_A_LOG, "sh", "python")
    shown = "".join(texts(FROM_A_LOG, "text")).splitlines()
    assert set(shown) <= set("".join(said).splitlines())
    assert (tmp_path / "evaluation" / "estimates.csv").exists()
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "submax evaluate visits.csv" in report
    assert "By country" in report
    (answers,) = [one for one in said if '"visit-1"' in one]
    decision, receipt = map(json.loads, answers.splitlines())
    assert (decision["version"], decision["action"]) == (1, "B")
    assert receipt["status"] == "accepted"
    assert (tmp_path / "log.parquet").exists()


def test_the_guide_to_logs_has_the_data_and_the_commands_of_the_tutorial(reader):
    data, *_ = texts(LOGS, "python")
    assert texts(FROM_A_LOG, "python") == [data]
    _, *commands, tune = texts(LOGS, "sh")
    assert set(commands) <= set(texts(FROM_A_LOG, "sh"))
    reader.follow("python", data)
    assert '"kind": "linear-thompson"' in reader.follow("sh", tune)


def test_the_page_on_the_best_arm(reader):
    said = follow(reader, BEST_ARM, "sh", "python")
    shown = "".join(texts(BEST_ARM, "text"))
    assert set(shown.splitlines()) <= set("".join(said).splitlines())


def run_commands(page, changes):
    """What the commands of a page print, run in this process, with fewer replicas."""
    said = ""
    for line in "".join(texts(page, "sh")).splitlines():
        if line.startswith("submax "):
            for given, small in changes.items():
                line = line.replace(given, small)
            done = CliRunner().invoke(main, shlex.split(line)[1:])
            assert done.exit_code == 0, (line, done.output)
            said += done.stdout
    return said


def test_the_paper_is_reproduced(tmp_path, monkeypatch):
    """The figures themselves are drawn by the tests of the command."""
    monkeypatch.chdir(tmp_path)
    changes = {"--replicas 500": "--replicas 5", "--replicas 20": "--replicas 2"}
    changes["--jobs 1"] = "--jobs 1 --no-figures"
    said = run_commands("docs/tutorials/reproduce-the-paper.md", changes)
    assert "Statements tested by section 3.3" in said
    for name, lines in (("illustration", 7), ("bernoulli", 4)):
        rows = (tmp_path / "results" / name / "summary.csv").read_text().splitlines()
        assert len(rows) == lines


def test_the_file_of_simulations_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = "docs/tutorials/simulate-and-compare.md"
    Path("late.toml").write_text(*texts(page, "toml"))
    said = run_commands(page, {"late.toml": "late.toml --replicas 4 --no-figures"})
    assert "rcp-adaptive" in said


def test_an_experiment_with_a_policy_of_your_own(tmp_path, monkeypatch):
    page = "docs/how-to/experiments.md"
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(texts(page, "toml")[0], encoding="utf-8")
    (code,) = re.findall(r"^```python[^\n]*\n(.*?)^```", PAGES[page], re.DOTALL | re.MULTILINE)[:1]
    Path("first_arm.py").write_text(code, encoding="utf-8")
    # The worker, which must find the policy too, is a process of its own.
    options = ("--replicas", "3", "--jobs", "1", "--no-figures")
    done = CliRunner().invoke(main, ["simulate", "mine.toml", *options])
    assert done.exit_code == 0, done.output
    assert "first arm" in (tmp_path / "results" / "mine" / "summary.csv").read_text()
