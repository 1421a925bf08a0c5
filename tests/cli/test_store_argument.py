"""A store can be named by a variable, and the first key says what it changes."""

import pytest
from click.testing import CliRunner

from submax.cli import main


@pytest.fixture
def run(monkeypatch):
    monkeypatch.delenv("SUBMAX_STORE", raising=False)
    monkeypatch.delenv("SUBMAX_STORE_FILE", raising=False)
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


def test_the_store_is_read_from_a_variable_or_a_file(run, tmp_path, monkeypatch):
    store, secret = tmp_path / "page.db", tmp_path / "secret"
    secret.write_text(f"{store}\n")
    monkeypatch.setenv("SUBMAX_STORE_FILE", str(secret))
    assert run("keys", "add", "--scope", "admin", "--name", "operator").exit_code == 0
    monkeypatch.delenv("SUBMAX_STORE_FILE")
    monkeypatch.setenv("SUBMAX_STORE", str(store))
    assert "operator" in run("keys", "list").stdout
    assert run("audit").stdout == run("audit", store).stdout != ""


def test_a_store_on_the_command_line_comes_first(run, tmp_path, monkeypatch):
    monkeypatch.setenv("SUBMAX_STORE", str(tmp_path / "other.db"))
    assert run("keys", "add", tmp_path / "page.db", "--scope", "admin").exit_code == 0
    assert not (tmp_path / "other.db").exists()


def test_without_a_store_the_argument_is_missed(run):
    found = run("keys", "list")
    assert found.exit_code == 2
    assert "Missing argument '[STORE|ADDRESS]'" in found.stderr


def test_a_file_of_the_variable_that_cannot_be_read_is_named(run, tmp_path, monkeypatch):
    monkeypatch.setenv("SUBMAX_STORE_FILE", str(tmp_path / "none"))
    found = run("keys", "list")
    assert found.exit_code == 2
    assert "the variable SUBMAX_STORE_FILE was" in found.stderr


def test_a_first_key_without_rights_says_who_can_declare(run, tmp_path):
    store = tmp_path / "page.db"
    words = "no key of the store has the scope admin"
    assert words in run("keys", "add", store, "--scope", "reward", "--browser").stderr
    assert words not in run("keys", "add", store, "--scope", "admin").stderr
    assert words not in run("keys", "add", store, "--scope", "read").stderr
