"""Every option of the server is also an environment variable."""

import inspect

import pytest
from click.testing import CliRunner

from submax.cli import main
from submax.server import run


@pytest.fixture
def options(monkeypatch):
    """The options with which the command would serve."""

    def options(*words, **variables):
        called = []
        monkeypatch.setattr(run, "serve", lambda **given: called.append(given))
        result = CliRunner().invoke(main, ["serve", *words], env=variables)
        assert result.exit_code == 0, result.output
        return called[0]

    return options


def test_defaults_hold_if_nothing_is_given(options):
    defaults = inspect.signature(run.serve).parameters
    found = options("a.db", SUBMAX_PORT="", SUBMAX_TRUST="")
    assert found == {name: one.default for name, one in defaults.items()} | {"store": "a.db"}


def test_a_variable_sets_an_option_and_the_command_line_wins(options):
    variables = {"SUBMAX_STORE": "b.db", "SUBMAX_LOG_FORMAT": "JSON", "SUBMAX_TRUST": "yes"}
    found = options(**variables, SUBMAX_PORT="0")
    assert (found["store"], found["log_format"], found["trust"]) == ("b.db", "json", True)
    assert options("a.db", "--port", "1", **variables, SUBMAX_PORT="0")["port"] == 1


def test_a_wrong_variable_is_refused_and_named(tmp_path):
    file, wrong = tmp_path / "a.db", {"SUBMAX_PORT": "65536"}
    result = CliRunner().invoke(main, ["serve", str(file)], env=wrong)
    assert result.exit_code == 2
    assert "--port" in result.stderr
    assert not file.exists()


def test_a_variable_may_name_a_file_with_the_value(options, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("postgresql://a:b@c/d\n")
    by_file = {"SUBMAX_STORE_FILE": str(secret)}
    assert options(**by_file)["store"] == "postgresql://a:b@c/d"
    # An empty variable takes back that of a container file.
    assert options(**by_file, SUBMAX_STORE="")["store"] == "postgresql://a:b@c/d"
    result = CliRunner().invoke(main, ["serve"], env={"SUBMAX_STORE_FILE": "/nowhere"})
    assert result.exit_code == 2
    assert "(invalid-variable)" in result.stderr
