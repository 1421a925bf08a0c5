"""The commands of operators do the same at the address of a server as in its store."""

import json
from threading import Thread
from unittest.mock import Mock

import pytest
import uvicorn
from waiting import wait_until

from submax.live.bandits.open import open_store
from submax.web.server.access.key_registry import KeyRegistry
from submax.web.server.app import make_app
from submax.web.server.service import Service

pytestmark = pytest.mark.xdist_group("operators")
"""One server for all tests, in their order: the last one deletes the bandit."""


@pytest.fixture(scope="module")
def served(shop, tmp_path_factory):
    """A file with a bandit, and the address of a server that has the file open."""
    file = tmp_path_factory.mktemp("served") / "shop.db"
    file.write_bytes(shop)
    store = open_store(file)
    _, key = KeyRegistry(store).add(("admin",), None, None)
    # Nothing is tried: the policies of these tests are known to work.
    app = make_app(Service(store, Mock()))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield file, f"http://127.0.0.1:{port}", key
    server.should_exit = True
    thread.join()


@pytest.fixture
def command(served, done, monkeypatch):
    """Run a command at the address of the server, which stands where a word is None."""
    _, address, key = served
    monkeypatch.setenv("SUBMAX_KEY", key)
    return lambda *words: done(*[address if word is None else word for word in words])


@pytest.mark.parametrize("words", [("status",), ("lift",), ("alarms", "show")])
def test_the_server_is_shown_as_its_store_is(served, command, done, words):
    # The server may fit a version between the two commands.
    wait_until(lambda: command(*words, None) == done(*words, served[0]))


def test_a_bandit_is_changed_and_the_audit_says_so(served, command, done):
    file, _, _ = served
    command("set", None, "shop", "refit_rows=7", "guard_rails.minimum=0.05")
    notices = command("status", None).count("NOTICE")
    command("pause", None, "shop")
    assert command("status", None).count("NOTICE") == notices + 1
    command("archive", None, "shop")
    command("resume", None, "shop")
    assert "ACTIVE" in command("alarms", "show", None)
    command("alarms", "acknowledge", None, "shop")
    assert "ACTIVE" not in command("alarms", "show", None)
    audit = done("audit", file)
    words = ["set", "pause", "archive", "resume", "acknowledge-alarms"]
    assert all(f"  {word}  shop" in audit for word in words)


def test_a_decision_is_made_and_rewarded(command):
    made = json.loads(command("decide", None, "--id", "visit-1", "--unit", "visitor"))
    assert (made["id"], made["unit"]) == ("visit-1", "visitor")
    assert json.loads(command("reward", None, "visit-1", 1))["status"] == "accepted"
    assert json.loads(command("reward", None, "visit-1", 1))["repeated"]


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (("set", "ADDRESS", "shop", "guard_rails.minimum=0.9"), "(guard-rail)"),
        (("set", "ADDRESS", "shop", "refit_row=9"), "'refit_rows'"),
        (("pause", "ADDRESS", "other"), "(not-found)"),
        (("reward", "ADDRESS", "visit-1", "2"), "2"),
        (("decide", "ADDRESS", "--unit", "two words"), "unit"),
        (("set", "ADDRESS", "shop", "policy=rcp-submx"), "'rcp-submax'"),
        (("export", "ADDRESS"), "http://127.0.0.1"),
        (("status", "http://"), "'http://'"),
    ],
)
def test_what_is_wrong_is_one_line_and_changes_nothing(served, command, done, refused, words, fact):
    before = done("audit", served[0])
    said = refused(*[served[1] if word == "ADDRESS" else word for word in words])
    assert said.count("\n") == 1
    assert fact in said
    assert done("audit", served[0]) == before
    assert json.loads(command("decide", None))["action"] in ("A", "B")


def test_keys_are_added_listed_and_revoked(served, command, done, refused):
    options = ("--scope", "reward", "--browser", "--rate", "5", "--name", "page")
    text = command("keys", "add", None, *options, "--expires", "2130-01-31").strip()
    _, number, secret = text.split(".")
    listed = command("keys", "list", None)
    assert secret not in listed
    # The time at which the other key was last used reaches the store within a minute.
    assert listed.splitlines()[-1] == done("keys", "list", served[0]).splitlines()[-1]
    for fact in (number, "page", "reward", "for browsers", "5 requests", "2130-01-31"):
        assert fact in listed.splitlines()[-1]
    command("keys", "revoke", None, number)
    assert number not in command("keys", "list", None)
    assert "(not-found)" in refused("keys", "revoke", served[1], number)
    audit = command("audit", None, "--last", 2)
    assert audit == done("audit", served[0], "--last", "2")
    assert [line.split("  ")[2] for line in audit.splitlines()] == ["revoke-key", "add-key"]


def test_a_key_is_needed_and_read_from_a_file(
    served, command, done, refused, monkeypatch, tmp_path
):
    _, address, key = served
    monkeypatch.delenv("SUBMAX_KEY")
    said = refused("pause", address, "shop")
    assert "SUBMAX_KEY" in said
    assert "(unauthorized)" in said
    (tmp_path / "key").write_text(f"{key}\n")
    monkeypatch.setenv("SUBMAX_KEY_FILE", str(tmp_path / "key"))
    done("status", address)


def test_a_bandit_is_deleted_at_last(served, command, refused):
    command("delete", None, "shop", "--yes")
    refused("status", served[1])
    assert "  delete  shop" in command("audit", None)
