"""The commands do the same at the address of a server as in its store."""

import json

import pytest
from pyarrow import parquet
from waiting import wait_until

from .conftest import done, refused

pytestmark = pytest.mark.xdist_group("operators")
"""One server for all tests, in their order: the last one deletes the bandit."""
KEY = ("keys", "add", "--scope", "admin", "--name", "operator")


@pytest.fixture(scope="module")
def served(shop, start_server, tmp_path_factory):
    """A file with a bandit, the address of a server that has the file open, and a key."""
    file = tmp_path_factory.mktemp("served") / "shop.db"
    file.write_bytes(shop)
    key = done(*KEY, "--store", file).strip()
    return file, start_server(file).address, key


@pytest.fixture
def command(served, monkeypatch):
    """Run a command at the address of the server."""
    _, address, key = served
    monkeypatch.setenv("SUBMAX_KEY", key)
    return lambda *words: done(*words, "--store", address)


@pytest.mark.parametrize("words", [("status",), ("lift",), ("versions",), ("list",)])
def test_the_server_is_shown_as_its_store_is(served, command, words):
    # The server may fit a version between the two commands.
    wait_until(lambda: command(*words) == done(*words, "--store", served[0]))


def test_a_bandit_is_changed_and_the_audit_says_so(served, command):
    command("set", "shop", "guard_rails.minimum=0.05")
    for words in (("archive",), ("resume",), ("add", "C", "--ramp", "0"), ("roll-back",)):
        command(words[0], "shop", *words[1:])
    assert "is held; to follow new versions: submax publish shop" in command("status")
    command("publish", "shop")
    audit = command("audit", "shop")
    assert audit == done("audit", "shop", "--store", served[0])
    words = ["set", "archive", "resume", "change", "roll-back", "publish"]
    assert all(f"  {word}  shop" in audit for word in words)
    assert "operator (" in audit
    made = json.loads(command("decide", "--id", "visit-1", "--unit", "visitor"))
    assert (made["id"], made["unit"]) == ("visit-1", "visitor")
    assert json.loads(command("reward", "shop", "visit-1", 1))["status"] == "accepted"
    assert json.loads(command("erase", "shop", "visitor", "--json")) == {"decisions": 1}


def test_the_decisions_are_exported(command, served, tmp_path):
    command("export", "--out", tmp_path / "log.parquet")
    assert (tmp_path / "log.parquet").read_bytes().startswith(b"PAR1")
    assert (tmp_path / "log.parquet").stat().st_mode & 0o077 == 0
    assert parquet.read_table(tmp_path / "log.parquet").num_rows > 0
    assert "--delete" in refused("export", "--delete", "--store", served[1])
    for place in (served[0], served[1]):
        assert ".xlsx" in refused("export", "--out", tmp_path / "log.xlsx", "--store", place)


def test_a_backup_needs_the_store_itself(served, tmp_path):
    assert "URL of a server" in refused("backup", served[1], tmp_path / "copy.db")


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (("set", "shop", "guard_rails.minimum=0.9"), "(guard-rail)"),
        (("set", "shop", "refit_row=9"), "'refit_rows'"),
        (("pause", "other"), "(not-found)"),
        (("reward", "shop", "visit-2", "2"), "2"),
    ],
)
def test_what_is_wrong_is_one_line_and_changes_nothing(served, command, words, fact):
    before = command("audit")
    said = refused(*words, "--store", served[1])
    assert said.count("\n") == 1
    assert fact in said
    assert command("audit") == before
    assert json.loads(command("decide"))["action"] in ("A", "B", "C")


def test_a_key_is_needed_and_read_from_a_file(served, command, monkeypatch, tmp_path):
    _, address, key = served
    monkeypatch.delenv("SUBMAX_KEY")
    assert "(unauthorized)" in refused("pause", "shop", "--store", address)
    (tmp_path / "key").write_text(f"{key}\n")
    monkeypatch.setenv("SUBMAX_KEY_FILE", str(tmp_path / "key"))
    done("status", "--store", address)


def test_a_bandit_is_deleted_at_last(command):
    command("delete", "shop", "--yes")
    assert "no bandit" in command("list")
    assert "  delete  shop" in command("audit")
