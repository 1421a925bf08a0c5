"""Every option of the server is also an environment variable."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from refusals import raises_code

from submax.cli import main
from submax.server.options import OPTIONS, STORE, ServeOptions

WRONG = {
    "port": ["abc", "65536"],
    "rate": ["0", "nan"],
    "learned": ["nowhere.submax"],
    "trust": ["perhaps"],
    "telemetry": ["perhaps"],
    "origin": ["*", "null", "https://a/b", "ftp://a", "https://a.example,b"],
    "proxy": ["everybody", "10.0.0.0/99"],
    "log_format": ["xml"],
    "log_level": ["loud"],
}
RIGHT = {
    "store": ("a.db", "a.db"),
    "host": ("0.0.0.0", "0.0.0.0"),
    "port": ("0", 0),
    "rate": ("1e3", 1000.0),
    "learned": (__file__, Path(__file__)),
    "trust": ("yes", True),
    "origin": (" https://a.example, http://B.example/ ", ("https://a.example", "http://b.example")),
    "proxy": ("10.0.0.0/8,::1", ("10.0.0.0/8", "::1")),
    "log_format": ("JSON", "json"),
    "log_level": ("debug", "debug"),
    "telemetry": ("on", True),
}


def test_defaults_hold_if_nothing_is_given():
    found = ServeOptions.of({"store": "a.db"}, {"SUBMAX_PORT": "", "SUBMAX_TRUST": ""})
    assert found == ServeOptions(
        "a.db", "127.0.0.1", 8000, 20_000.0, None, False, (), ("127.0.0.1",), "text", "info", False
    )


@pytest.mark.parametrize("option", [STORE, *OPTIONS], ids=lambda one: one.name)
def test_a_variable_sets_an_option_and_the_command_line_wins(option):
    text, value = RIGHT[option.name]
    environment = {"SUBMAX_STORE": "b.db", option.variable: text}
    assert getattr(ServeOptions.of({}, environment), option.name) == value
    if option.name in WRONG:
        wrong = {"SUBMAX_STORE": "b.db", option.variable: WRONG[option.name][0]}
        given = True if option.flag else (text,) if option.repeats else text
        assert getattr(ServeOptions.of({option.name: given}, wrong), option.name) == value


@pytest.mark.parametrize(("name", "text"), [(name, one) for name in WRONG for one in WRONG[name]])
def test_a_wrong_variable_is_refused_and_named(name, text, tmp_path):
    (option,) = [one for one in OPTIONS if one.name == name]
    with raises_code("invalid-variable", name):
        ServeOptions.of({"store": "a.db"}, {option.variable: text})
    file = tmp_path / "a.db"
    result = CliRunner().invoke(main, ["serve", str(file)], env={option.variable: text})
    assert result.exit_code == 2
    assert option.variable in result.stderr
    assert "(invalid-variable)" in result.stderr
    assert not file.exists()


def test_a_variable_may_name_a_file_with_the_value(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("postgresql://a:b@c/d\n")
    by_file = {"SUBMAX_STORE_FILE": str(secret)}
    assert ServeOptions.of({}, by_file).store == "postgresql://a:b@c/d"
    # An empty variable takes back that of a container file.
    assert ServeOptions.of({}, {**by_file, "SUBMAX_STORE": ""}).store == "postgresql://a:b@c/d"
    with raises_code("invalid-variable"):
        ServeOptions.of({}, {"SUBMAX_STORE_FILE": "/nowhere"})


def test_without_a_store_the_command_says_what_to_give():
    result = CliRunner().invoke(main, ["serve"], env={"SUBMAX_STORE": None})
    assert result.exit_code == 2
    assert "SUBMAX_STORE" in result.stderr
