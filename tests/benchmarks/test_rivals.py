"""The candidates of rivals, and the experiment files that are written with the best ones."""

import tomllib
from pathlib import Path

import pytest

from submax.experiments.running.cells import policy_of
from submax.experiments.specification import parse

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "policies"


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.parametrize("problem", ["contextual-rivals", "combinatorial-rivals"])
def test_every_rival_has_as_many_candidates_as_other_methods(problem):
    from tuning import OWN, PROBLEMS, candidates, parameters

    search, _, batch = PROBLEMS[problem]
    made = candidates(search, batch)
    for method in search:
        tables = [table for name, table in made if name == method]
        assert len(tables) == 24
        assert len({parameters(table) for table in tables}) == 24
        for table in tables:
            assert policy_of(table) is not None
            named = {part.split()[0] for part in parameters(table).split(", ")}
            assert named == {"hidden", "steps", "learning_rate", OWN[method]}


@pytest.mark.parametrize("problem", ["contextual-rivals", "combinatorial-rivals"])
def test_the_best_candidate_is_written_into_the_experiment(problem):
    from rivals import EXPERIMENTS, NAMES, best, with_best
    from tuning import PROBLEMS, candidates, parameters

    search, _, batch = PROBLEMS[problem]
    made = candidates(search, batch)
    rows = [
        {"method": method, "parameters": parameters(table), "score": str(10.0 + place)}
        for place, (method, table) in enumerate(made)
        if method != "random"
    ]
    # 9 is the lowest number, and not the lowest text.
    chosen = {}
    for method in search:
        last = next(row for row in reversed(rows) if row["method"] == method)
        last["score"] = "9.0"
        chosen[method] = best(method, rows, batch)
    text = (EXPERIMENTS / f"{problem}.toml").read_text(encoding="utf-8")
    written = with_best(text, problem, rows)
    assert tomllib.loads(written)["extends"] == problem.removesuffix("-rivals")
    policies = {row["name"]: row for row in parse(written, problem).policies if "name" in row}
    for method, table in chosen.items():
        assert policy_of(policies[NAMES.get(method, method)]) == policy_of(table)
    wanted = [table for name, table in made if name == next(iter(search))][-1]
    assert policy_of(chosen[next(iter(search))]) == policy_of(wanted)


@pytest.mark.parametrize("problem", ["contextual-rivals", "combinatorial-rivals"])
def test_a_published_tuning_can_be_finished(problem, tmp_path):
    """The candidates that the scripts make are those in the table, so that none is run twice."""
    from candidate_runs import rows_of
    from tuning import PROBLEMS, candidates, neighbours, parameters
    from tuning_rounds import join, split

    table = BENCHMARKS.parents[1] / "docs" / "results" / "tuning" / f"{problem}.csv"
    split(table, tmp_path, problem)
    first, second = (rows_of(tmp_path / f"{problem}-{number}.csv") for number in (1, 2))
    search, _, batch = PROBLEMS[problem]
    made = [(method, parameters(one)) for method, one in candidates(search, batch)]
    assert set(first) == set(made)
    near = [
        (method, parameters(one)) for method, one in neighbours(search, batch, list(first.values()))
    ]
    assert {("random", "")} < set(second) <= set(near)
    # Nothing is lost on the way.
    assert join(tmp_path, problem).read_bytes() == table.read_bytes()


def test_rounds_that_were_begun_are_not_replaced_by_published_ones(tmp_path):
    from tuning_rounds import split

    begun = tmp_path / "combinatorial-rivals-2.csv"
    begun.write_text("method\nmine\n", encoding="utf-8")
    table = BENCHMARKS.parents[1] / "docs" / "results" / "tuning" / "combinatorial-rivals.csv"
    split(table, tmp_path, "combinatorial-rivals")
    assert begun.read_text(encoding="utf-8") == "method\nmine\n"
    assert (tmp_path / "combinatorial-rivals-1.csv").exists()


def test_a_quick_tuning_is_not_mixed_with_published_candidates(monkeypatch, capsys):
    import rivals

    monkeypatch.setattr("sys.argv", ["rivals.py", "--out", "o", "--quick", "--resume", "r"])
    with pytest.raises(SystemExit):
        rivals.main()
    assert "leave out --quick or --resume" in capsys.readouterr().err


def test_a_part_of_the_second_round_has_equally_many_candidates_of_every_method(tmp_path):
    from rivals import complete, of_candidates, round_candidates
    from tuning import PROBLEMS
    from tuning_rounds import round_file, rows_of, split

    problem = "combinatorial-rivals"
    table = BENCHMARKS.parents[1] / "docs" / "results" / "tuning" / f"{problem}.csv"
    split(table, tmp_path, problem)
    first = round_file(tmp_path, problem, 1)
    assert complete(first, round_candidates(problem, None, 24))
    near = round_candidates(problem, first, 5)
    methods = [method for method, _ in near if method != "random"]
    assert {methods.count(method) for method in PROBLEMS[problem][0]} == {5}
    assert not complete(first, near)
    rows = [{"round": "2", "method": one[0], "parameters": one[1]} for one in sorted(near)]
    beyond = sorted(round_candidates(problem, first, 6) - near)[0]
    other = {"round": "2", "method": beyond[0], "parameters": beyond[1]}
    known = [row for row in rows_of(table) if row["round"] == "1"]
    assert of_candidates([*known, *rows, other], problem, 5) == [*known, *rows]


def test_a_tuning_without_any_result_yet_is_joined(tmp_path):
    from tuning_rounds import join, rows_of

    assert rows_of(join(tmp_path, "combinatorial-rivals")) == []


def test_a_call_is_stopped_when_the_time_is_up(capfd):
    from timed_calls import SECONDS_TO_STOP, TimedCalls
    from tuning import UNFINISHED

    calls = TimedCalls.of((SECONDS_TO_STOP + 1) / 60)
    with pytest.raises(SystemExit) as stopped:
        calls.run("-c", "import time; time.sleep(100)")
    assert stopped.value.code == UNFINISHED
    assert "The time is up" in capfd.readouterr().out
    with pytest.raises(SystemExit, match="7"):
        TimedCalls.of(None).run("-c", "raise SystemExit(7)")
