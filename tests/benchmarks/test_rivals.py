"""The candidates of rivals, and the experiment files that are written with the best ones."""

import tomllib
from pathlib import Path

import pytest

from submax.experiments.cells import policy_of
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
