import json

import pytest
from click.testing import CliRunner

from submax.cli import main
from submax.cli.recommending.command import GOALS, REWARDS
from submax.recommendation import answers


def test_words_are_those_of_the_answers():
    assert answers.REWARDS == REWARDS
    assert answers.GOALS == GOALS


def test_options_are_enough_for_scripts():
    words = "recommend --actions 20 --context --rewards rare --batch 100 --goal earn --json"
    done = CliRunner().invoke(main, words.split())
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["policy"] == "rcp-adaptive"
    assert found["answers"]["actions"] == [20]
    assert found["assumed"] == []
    assert {"python", "toml", "commands", "runner_up", "untested", "measured"} <= set(found)


@pytest.fixture
def terminal(monkeypatch):
    """Somebody sits at a terminal; the runner's input is a file."""
    monkeypatch.setattr("submax.cli.recommending.questions.can_ask", lambda: True)


def test_five_questions_are_asked_and_wrong_answers_asked_again(terminal):
    done = CliRunner().invoke(main, ["recommend"], input="none\n2x3\ny\noften\n50\nadapt\n")
    assert done.exit_code == 0, done.output
    assert "allowed are a number of arms" in done.stderr
    for number in range(1, 6):
        assert f"{number} of 5." in done.stderr
    assert "2 slots with 6 joint actions, a context, rewards: often, batches of 50" in done.stdout
    assert "Assumed" not in done.stdout


def test_a_log_is_read_with_the_columns_that_are_named(tmp_path):
    (tmp_path / "log.csv").write_text("shown,bought\nA,1\nB,0\nA,0\nB,0\n", encoding="utf-8")
    words = ["--column", "action=shown", "--column", "reward=bought", "--goal", "explain"]
    done = CliRunner().invoke(main, ["recommend", str(tmp_path / "log.csv"), *words])
    assert done.exit_code == 0, done.output
    assert "Policy: bayes-ucb-1-9-pending" in done.stdout
    assert "guard_rails" in done.stdout, "the policy is deterministic"


@pytest.mark.parametrize("option", ["--actions 5", "--rewards rare", "--goal adapt", ""])
def test_without_a_terminal_nothing_is_asked(option):
    done = CliRunner().invoke(main, ["recommend", *option.split()], input="5\nn\noften\n1\nearn\n")
    assert done.exit_code == 2
    assert "missing-answer" in done.stderr
    assert "of 5." not in done.stderr
    for word in ("actions", "rewards"):
        assert (f"--{word}" in done.stderr) == (f"--{word}" not in option)


@pytest.mark.parametrize(
    ("option", "answers"),
    [
        ("--actions 5", "n\nrare\n100\nearn\n"),
        ("--rewards rare", "5\nn\n100\nearn\n"),
        ("--rewards rare --actions 5 --no-context", "100\nearn\n"),
    ],
)
def test_in_a_terminal_what_no_option_answers_is_asked(option, answers, terminal):
    done = CliRunner().invoke(main, ["recommend", *option.split()], input=answers)
    assert done.exit_code == 0, done.output
    assert done.stderr.count("of 5.") == answers.count("\n")
    assert "5 arms, no context, rewards: rare, batches of 100, goal: earn" in done.stdout
    assert "Assumed" not in done.stdout


def test_a_program_is_never_asked(terminal):
    done = CliRunner().invoke(main, ["recommend", "--actions", "5", "--rewards", "rare", "--json"])
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["assumed"]) == 3


@pytest.mark.parametrize(
    "words", ["--bandit b", "--column reward=bought", "--declare declared.toml"], ids=str
)
@pytest.mark.parametrize("asks", [False, True], ids=["script", "terminal"])
def test_options_for_logs_and_stores_are_refused_without_one(words, asks, monkeypatch):
    monkeypatch.setattr("submax.cli.recommending.questions.can_ask", lambda: asks)
    words = ["recommend", "--actions", "5", "--rewards", "rare", *words.split()]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "unused-option" in done.stderr
    assert "of 5." not in done.stderr, "nobody is asked in vain"
