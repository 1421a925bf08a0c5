"""Every option of the server is also an environment variable."""

import importlib.util
from pathlib import Path

import pytest
from click.testing import CliRunner
from refusals import raises_code

from submax.cli import main
from submax.core.errors import InputError
from submax.web.server.running.serve_options import OPTIONS, STORE, ServeOptions

WRONG = {
    "port": ["abc", "65536", "-1", "1.5", "8000 8001"],
    "rate": ["0", "-1", "nan", "inf", "much"],
    "learned": ["nowhere.submax"],
    "trust": ["perhaps", "2"],
    "telemetry": ["perhaps"],
    "origin": ["*", "shop.example", "https://a.example,b"],
    "proxy": ["everybody", "10.0.0.0/99"],
    "log_format": ["xml", "JSONL"],
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
    found = ServeOptions.of({"store": "a.db"}, {})
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
def test_a_wrong_value_is_one_sentence_that_names_the_variable(name, text, tmp_path):
    (option,) = [one for one in OPTIONS if one.name == name]
    with pytest.raises(InputError) as raised:
        ServeOptions.of({"store": "a.db"}, {option.variable: text})
    assert f"the variable {option.variable} was {text!r}" in str(raised.value)
    assert option.allowed in str(raised.value)
    assert option.example in str(raised.value)
    assert raised.value.code == "invalid-variable"
    file = tmp_path / "a.db"
    result = CliRunner().invoke(main, ["serve", str(file)], env={option.variable: text})
    assert result.exit_code == 2
    assert result.stderr == f"Error: {raised.value} (invalid-variable)\n"
    assert not file.exists()


def test_a_wrong_option_of_the_command_line_is_named_by_its_word():
    result = CliRunner().invoke(main, ["serve", "a.db", "--port", "abc"])
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: --port was 'abc'")


def test_a_variable_may_name_a_file_with_the_value(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("postgresql://a:b@c/d\n")
    assert ServeOptions.of({}, {"SUBMAX_STORE_FILE": str(secret)}).store == "postgresql://a:b@c/d"
    with raises_code("invalid-variable"):
        ServeOptions.of({}, {"SUBMAX_STORE_FILE": "/nowhere"})


def test_an_empty_variable_takes_back_that_of_a_container_file(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("b.db")
    found = ServeOptions.of({}, {"SUBMAX_STORE": "", "SUBMAX_STORE_FILE": str(secret)})
    assert found.store == "b.db"


def test_an_empty_variable_is_none():
    assert ServeOptions.of({"store": "a.db"}, {"SUBMAX_PORT": "", "SUBMAX_TRUST": ""}).port == 8000


def test_without_a_store_the_command_says_what_to_give():
    result = CliRunner().invoke(main, ["serve"], env={"SUBMAX_STORE": None})
    assert result.exit_code == 2
    assert "SUBMAX_STORE" in result.stderr


def test_the_page_of_the_server_lists_every_variable():
    folder = Path(__file__).parents[3] / "docs"
    found = importlib.util.spec_from_file_location(
        "options_table", folder / "generators" / "options_table.py"
    )
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    assert module.table() in (folder / "how-to" / "server.md").read_text(encoding="utf-8")
