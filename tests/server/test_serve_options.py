"""Every option of the server is also an environment variable."""

import inspect
from pathlib import Path

import pytest
from click.testing import CliRunner

from submax.cli import main
from submax.server import run

WRONG = {
    "PORT": ["abc", "65536"],
    "RATE": ["0", "nan"],
    "LEARNED": ["nowhere.submax"],
    "TRUST": ["perhaps"],
    "TELEMETRY": ["perhaps"],
    "LOG_FORMAT": ["xml"],
    "LOG_LEVEL": ["loud"],
}
RIGHT = {
    "STORE": ("store", "a.db", "a.db"),
    "HOST": ("host", "0.0.0.0", "0.0.0.0"),
    "PORT": ("port", "0", 0),
    "RATE": ("rate", "1e3", 1000.0),
    "LEARNED": ("learned", __file__, Path(__file__)),
    "TRUST": ("trust", "yes", True),
    "LOG_FORMAT": ("log_format", "JSON", "json"),
    "LOG_LEVEL": ("log_level", "debug", "debug"),
    "TELEMETRY": ("telemetry", "on", True),
}


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


@pytest.mark.parametrize("variable", RIGHT)
def test_a_variable_sets_an_option_and_the_command_line_wins(options, variable):
    name, text, value = RIGHT[variable]
    variables = {"SUBMAX_STORE": "b.db", f"SUBMAX_{variable}": text}
    assert options(**variables)[name] == value
    if variable in WRONG:
        variables[f"SUBMAX_{variable}"] = WRONG[variable][0]
        word = f"--{name.replace('_', '-')}"
        words = [word] if value is True else [word, text]
        assert options(*words, **variables)[name] == value


@pytest.mark.parametrize(("name", "text"), [(name, one) for name in WRONG for one in WRONG[name]])
def test_a_wrong_variable_is_refused_and_named(name, text, tmp_path):
    file = tmp_path / "a.db"
    result = CliRunner().invoke(main, ["serve", str(file)], env={f"SUBMAX_{name}": text})
    assert result.exit_code == 2
    assert name.lower()[:4] in result.stderr.lower()
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
