import json

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


def test_five_questions_are_asked_and_wrong_answers_asked_again():
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
    assert "guard_rails" not in done.stdout, "the log is learned from, and nothing is declared"


def test_a_missing_answer_is_an_error_with_a_code():
    done = CliRunner().invoke(main, ["recommend", "--actions", "5"])
    assert done.exit_code == 2
    assert "missing-answer" in done.stderr
