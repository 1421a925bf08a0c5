"""Commands and Python lines of a recommendation work as they stand."""

import shlex

import pytest
from click.testing import CliRunner

import submax
from submax.cli import main
from submax.web.server.running.serve_options import ServeOptions

ADDRESS = "http://127.0.0.1:8000"
COLUMNS = {"action": "the shown", "reward": "bought", "context": ["age", "size"]}


def run(words):
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def run_pasted(commands, place):
    """Run each line; the server is not started, and its bandit is changed in its store."""
    for line in commands.splitlines():
        program, *words = shlex.split(line, comments=True)
        assert program == "submax"
        if words[0] == "serve":
            assert words[1:3] == [place, "--learned"]
            options = ServeOptions.of({"store": words[1], "learned": words[3]}, {})
            submax.open(options.store, learned=options.learned, background=False).close()
        else:
            run([place if word == ADDRESS else word for word in words])


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A log whose name, columns and values all need options and quotes."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(
        f"{'ABC'[n % 3]},{int(n % 3 == 0)},{n % 7},{n % 5}.5,0.3333\n" for n in range(90)
    )
    text = f"the shown,bought,age,size,propensity\n{rows}"
    (tmp_path / "my log (1).csv").write_text(text, encoding="utf-8")
    declared = 'actions = ["A", "B", "C", "D"]\nrewards = "binary"\n'
    (tmp_path / "what is allowed.toml").write_text(declared, encoding="utf-8")
    return "my log (1).csv"


@pytest.mark.parametrize("goal", ["earn", "explain"])
def test_commands_for_a_log_run_as_they_are_printed(log, goal):
    columns = dict(COLUMNS)
    if goal == "earn":
        # The runner-up with a context is a network, which takes long to train.
        del columns["context"]
    found = submax.recommend(log, columns=columns, declare="what is allowed.toml", goal=goal)
    assert found.answers.sizes == (4,)
    run_pasted(found.commands, "bandit.db")
    with submax.open("bandit.db", background=False) as bandit:
        assert (bandit.settings.guard_rails.minimum > 0) == (goal == "explain")
        assert bandit.settings.policy == found.policy


@pytest.mark.parametrize("goal", ["earn", "explain"])
def test_python_for_a_log_runs_as_it_is_printed(log, goal):
    found = submax.recommend(log, columns=COLUMNS, declare="what is allowed.toml", goal=goal)
    exec(found.python, names := {})
    assert [one.name for one in names["learned"].schema.menu.slots[0].choices] == list("ABCD")
    if goal == "explain":
        with names["bandit"] as bandit:
            assert bandit.settings.guard_rails.minimum > 0


def test_a_pattern_of_columns_is_quoted(log):
    found = submax.recommend(log, columns={**COLUMNS, "context": ["s*", "age"]})
    assert "--column 'context=s*,age'" in found.commands
    run(shlex.split(found.commands.splitlines()[1])[1:])


def test_columns_that_no_command_can_name_are_left_to_python(log):
    columns = {**COLUMNS, "reward": {"sale": "bought"}}
    found = submax.recommend(log, columns=columns)
    assert found.commands.startswith("submax serve bandit.db --learned")
    exec(found.python, {})


def test_a_log_in_memory_is_named_as_such(log):
    given = submax.evaluation.Log.read(log, columns=COLUMNS)
    found = submax.recommend(given)
    assert "log.parquet" not in found.commands + found.python
    exec(found.python, {"log": given})


@pytest.mark.parametrize(
    "option", [{"bandit": "b"}, {"columns": {"reward": "r"}}, {"declare": "d.toml"}], ids=str
)
def test_options_that_a_log_in_memory_does_not_use_are_refused(option):
    log = submax.evaluation.Log.read({"action": ["A", "B"], "reward": [0, 1]})
    with pytest.raises(submax.InputError) as caught:
        submax.recommend(log, **option)
    assert caught.value.code == "unused-option"


def test_commands_for_a_store_run_as_they_are_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = "my store.db"
    with submax.open(place, name="home", actions=["A", "B"], background=False) as bandit:
        bandit.decide()
    found = submax.recommend(place, rewards="often", goal="explain")
    *before, promote = found.commands.splitlines()
    run_pasted("\n".join(before), place)
    assert promote == "submax shadow promote 'my store.db' home"
    with submax.open(place, name="home", background=False) as bandit:
        assert bandit.settings.shadow == found.policy
        assert bandit.settings.guard_rails.minimum > 0
    again = submax.recommend(place, rewards="often", goal="explain")
    assert "guard_rails" not in again.commands, "the bandit has a guard rail already"
    exec(again.python, names := {})
    names["bandit"].close()


@pytest.mark.parametrize("option", [{"columns": {"reward": "r"}}, {"declare": "d.toml"}], ids=str)
def test_options_that_a_store_does_not_use_are_refused(tmp_path, option):
    with submax.open(tmp_path / "a.db", actions=["A", "B"], background=False):
        pass
    with pytest.raises(submax.InputError) as caught:
        submax.recommend(tmp_path / "a.db", rewards="often", **option)
    assert caught.value.code == "unused-option"
