"""The tutorial on logs is followed, from the CSV file to the served policy; then the guides."""

import contextlib
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from submax.cli import main

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = (DOCS / "how-to" / "logs.md").read_text(encoding="utf-8")
BEST_ARM = (DOCS / "how-to" / "best-arm.md").read_text(encoding="utf-8")
TUTORIAL = (DOCS / "tutorials" / "from-a-log.md").read_text(encoding="utf-8")


def blocks(language, page=TUTORIAL):
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.DOTALL)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The CSV file that the first block writes."""
    folder = tmp_path_factory.mktemp("log")
    with contextlib.chdir(folder):
        exec(compile(blocks("python")[0], "<page>", "exec"), {})
    (file,) = folder.iterdir()
    return file


@pytest.fixture
def log(tmp_path, written):
    """A folder with this file."""
    shutil.copy(written, tmp_path)
    return tmp_path


def printed(folder, command):
    """What a command of ``submax`` prints, run in this process; it must not fail."""
    words = shlex.split(command)
    assert words[0] == "submax"
    # The report says by which command it was made.
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", words)
        done = CliRunner().invoke(main, words[1:])
    assert done.exit_code == 0, (command, done.output)
    return done.stdout


def test_the_guide_has_the_data_and_the_commands_of_the_tutorial():
    assert blocks("python") == blocks("python", GUIDE)[:1]
    _, *commands, _ = blocks("sh", GUIDE)
    assert set(commands) <= set(blocks("sh"))


def said_by_the_tutorial(number):
    return blocks("text")[number].splitlines()


def script(word):
    (found,) = [block for block in blocks("sh") if block.startswith(f"submax {word}")]
    return found


@pytest.mark.slow
def test_the_evaluation_says_what_the_page_says(log):
    said = printed(log, script("evaluate"))
    assert "logging policy: 0.08" in said
    assert set(said_by_the_tutorial(0)) <= set(said.splitlines())
    rows = (log / "evaluation" / "estimates.csv").read_text().splitlines()
    heads = rows[0].split(",")
    found = [dict(zip(heads, row.split(","), strict=False)) for row in rows[1:]]
    worth = [float(row["value"]) for row in found if row["policy"] == "linear-thompson"]
    assert len(worth) == 7
    assert all(0.11 < value < 0.15 for value in worth)
    counting = [row for row in found if row["policy"] == "rcp-submax"]
    assert all(float(row["high"]) > 0.07 and float(row["low"]) < 0.09 for row in counting)
    assert (log / "evaluation" / "forest.png").stat().st_size > 10_000
    report = (log / "report.html").read_text(encoding="utf-8")
    assert "submax evaluate visits.csv" in report
    assert "By country" in report


@pytest.mark.needs("curl")
@pytest.mark.slow
def test_from_the_file_to_a_served_policy(log, bash, wait_until_ready):
    assert said_by_the_tutorial(1)[0] in printed(log, script("learn")).splitlines()
    command = [sys.executable, "-m", *script("serve").split(), "--port", "0"]
    with subprocess.Popen(command, cwd=log, stderr=subprocess.PIPE, text=True) as server:
        said = ""
        while "http://" not in said:
            said = server.stderr.readline()
        address = said.split()[-1]
        wait_until_ready(address)
        (asking,) = [block for block in blocks("sh") if "curl" in block]
        answers = bash(
            log,
            asking.replace("curl ", "curl -sS -w '\\n' ").replace("http://127.0.0.1:8000", address),
        )
        decision, receipt = map(json.loads, answers.splitlines())
        assert (decision["version"], decision["action"]) == (1, "B")
        assert receipt["status"] == "accepted"
        printed(log, script("export"))
        server.terminate()
        assert server.wait(300) == 0
    assert (log / "log.parquet").exists()


@pytest.mark.slow
def test_tuning_prints_the_best(log):
    pytest.importorskip("optuna")
    said = printed(log, blocks("sh", GUIDE)[-1])
    assert '"kind": "linear-thompson"' in said


@pytest.mark.slow
def test_the_page_on_the_best_arm_is_followed(tmp_path):
    with contextlib.chdir(tmp_path):
        exec(compile(blocks("python", BEST_ARM)[0], "<page>", "exec"), {})
    (command,) = blocks("sh", BEST_ARM)
    said = printed(tmp_path, command).splitlines()
    assert set(blocks("text", BEST_ARM)[0].splitlines()) <= set(said)
