"""The script of docs/research."""

import importlib.util
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "research"


@pytest.fixture
def score(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    specification = importlib.util.spec_from_file_location("score", FOLDER / "score.py")
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "score", module)
    specification.loader.exec_module(module)
    yield module
    sys.modules.pop("problems", None)


def test_the_ratio_is_to_the_best_classic_policy_and_errors_add_up(score):
    rivals = [score.Final("p", name, 1, 9, mean, 3.0) for name, mean in (("a", 60), ("b", 50))]
    found = score.ratio(score.Final("p", "mine", 1, 9, 40.0, 4.0), rivals)
    assert (found.best, found.value) == ("b", 0.8)
    assert found.error == pytest.approx(0.8 * (0.1**2 + 0.06**2) ** 0.5)


def test_the_summary_counts_wins_and_finds_the_worst(score):
    ratios = [score.Ratio(name, "b", value, 0.03) for name, value in (("p", 0.7), ("q", 1.1))]
    words = "mean 0.900 ± 0.021, worst 1.100 ± 0.030, at or below 1 in 1 of 2"
    assert score.summary(ratios) == words


def test_every_problem_has_its_classic_policies(score):
    problems = importlib.import_module("problems")
    assert (len(list(problems.paper())), len(list(problems.held_out()))) == (27, 29)
    reported, chosen = score._rivals(score.REPORTING), score._rivals(score.CHOOSING)
    for problem in problems.paper():
        for rivals in (reported, chosen):
            assert {one.policy for one in rivals[problem.name]} == set(problems.classic(problem))
    for problem in problems.held_out():
        assert {one.policy for one in reported[problem.name]} == set(problems.BASIC)
    assert {problem.name for problem in problems.paper()} == set(chosen)


def test_the_basic_policies_were_run_with_many_replicas(score):
    problems = importlib.import_module("problems")
    basic = score._rivals(score.REPORTING, problems.BASIC)
    for problem in [*problems.paper(), *problems.held_out()]:
        assert {one.replicas for one in basic[problem.name]} == {400}
        assert {one.policy for one in basic[problem.name]} == set(problems.BASIC)


def test_slow_policies_are_rivals_only_if_there_are_few_arms(score):
    problems = importlib.import_module("problems")
    for problem in problems.paper():
        slow = set(problems.classic(problem)) & set(problems.SLOW)
        assert bool(slow) == problem.name.startswith("K=10 ")


def test_a_cell_is_the_simulation_of_that_problem_and_seed(score):
    problems = importlib.import_module("problems")
    problem = next(problems.paper())
    once, again, other = (score.final(problem, "random", seed, 20) for seed in (5, 5, 6))
    assert once == again
    assert once.mean != other.mean
    # Uniform choice loses 5000 times the best value less the mean, 10/11 − 1/2 on average.
    assert abs(once.mean - 5000 * (10 / 11 - 0.5)) < 5 * once.error


def test_a_policy_may_be_a_class_in_a_file(score, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from submax.policies.classic.ucb1 import UCB1\n\n\nclass Mine(UCB1):\n    pass\n"
    )
    assert type(score.made(f"{path}:Mine")).__name__ == "Mine"


def test_without_classic_policies_it_says_what_to_do(score, monkeypatch, capsys):
    monkeypatch.setattr(score, "_read", list)
    with pytest.raises(SystemExit):
        score.main(["random", "--jobs", "1"])
    assert "give --classics" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "name a policy"),
        (["rcp-adaptve"], "rcp-adaptive"),
        (["mine.py"], "mine.py:CLASS"),
        (["nowhere.py:Mine"], "there is no file 'nowhere.py'"),
        (["random", "--replicas", "1"], "at least two replicas"),
        (["random", "--jobs", "0"], "one job"),
        (["random", "--problems", "held-out"], "give --seed 2024, or --classics"),
    ],
)
def test_wrong_words_are_told_at_once(score, words, told, capsys):
    with pytest.raises(SystemExit) as ended:
        score.main(words)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_classic_policies_with_more_replicas_stay(score, tmp_path, monkeypatch):
    monkeypatch.setattr(score, "FILE", tmp_path / "classics.csv")
    score._add([score.Final("p", name, 1, 400, 50.0, 3.0) for name in "ab"])
    score._add([score.Final("p", "a", 1, 2, 1.0, 1.0), score.Final("p", "b", 1, 500, 2.0, 1.0)])
    assert sorted((one.policy, one.mean) for one in score._read()) == [("a", 50.0), ("b", 2.0)]
