"""The commands of operators do the same at the address of a server as in its store."""

import json
from threading import Thread
from time import sleep

import pytest
import uvicorn

import submax
from submax.live.bandits.open import open_store
from submax.live.monitoring.alarms.alarm_records import Alarm
from submax.testing import ManualClock
from submax.web.server.access.key_registry import KeyRegistry
from submax.web.server.app import make_app
from submax.web.server.service import Service


class NoTrial:
    """Nothing is tried: the policies of these tests are known to work."""

    def check(self, *_):
        pass

    def close(self):
        pass


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A file with a bandit, and the address of a server that has the file open."""
    file, clock = tmp_path_factory.mktemp("served") / "shop.db", ManualClock()
    opened = submax.open(
        file,
        actions=["A", "B"],
        shadow="rcp-submax",
        guard_rails={"holdout": 0.3, "baseline": "A"},
        reward_wait=60,
        background=False,
        clock=clock,
    )
    with opened as bandit:
        for _ in range(2):
            made = bandit.decide_many([{}] * 40)
            bandit.reward_many([{"id": one.id, "value": float(one.action == "B")} for one in made])
            clock.now += 61
            bandit.refit()
        bandit._alarm_log.raise_alarm(Alarm("reward-rate", "it has fallen", {"now": 0.1}), None)
    store = open_store(file)
    _, key = KeyRegistry(store).add(("admin",), None, None)
    app = make_app(Service(store, NoTrial()))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = Thread(target=server.run)
    thread.start()
    while not server.started:
        sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield file, f"http://127.0.0.1:{port}", key
    server.should_exit = True
    thread.join()


@pytest.fixture
def command(served, run_here, monkeypatch):
    """Run a command at the address of the server; the answer must not be an error."""
    _, address, key = served
    monkeypatch.setenv("SUBMAX_KEY", key)

    def command(*words: object) -> str:
        found = run_here(*[address if word is None else str(word) for word in words])
        assert found.returncode == 0, found.stderr
        return found.stdout

    return command


@pytest.mark.parametrize("words", [("status",), ("lift",), ("shadow", "show"), ("alarms", "show")])
def test_the_server_is_shown_as_its_store_is(served, command, run_here, words):
    assert command(*words, None) == run_here(*words, served[0]).stdout


def test_a_bandit_is_changed_and_the_audit_says_so(served, command, run_here):
    file, _, _ = served
    command("set", None, "shop", "refit_rows=7", "guard_rails.minimum=0.05")
    assert command("pause", None, "shop") == "The bandit shop is paused.\n"
    assert "NOTICE the bandit is paused" in command("status", None)
    command("archive", None, "shop")
    command("resume", None, "shop")
    assert "1 alarms" in command("alarms", "acknowledge", None, "shop")
    assert "over" in command("alarms", "show", None)
    assert "decides by rcp-submax now" in command("shadow", "promote", None, "shop")
    assert "decides by rcp-adaptive again" in command("shadow", "roll-back", None, "shop")
    assert "no shadow" in command("shadow", "remove", None, "shop")
    audit = run_here("audit", file).stdout
    words = ["set", "pause", "archive", "resume", "acknowledge-alarms", "promote-shadow"]
    assert all(f"  {word}  shop" in audit for word in words)


def test_a_decision_is_made_and_rewarded(command):
    made = json.loads(command("decide", None, "--id", "visit-1", "--unit", "visitor"))
    assert (made["id"], made["unit"]) == ("visit-1", "visitor")
    assert json.loads(command("reward", None, "visit-1", 1))["status"] == "accepted"
    assert json.loads(command("reward", None, "visit-1", 1))["repeated"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("set", "ADDRESS", "shop", "guard_rails.minimum=0.9"), "(guard-rail)"),
        (("set", "ADDRESS", "shop", "refit_row=9"), "did you mean 'refit_rows'?"),
        (("pause", "ADDRESS", "other"), "(not-found)"),
        (("status", "ADDRESS", "--bandit", "other"), "(not-found)"),
        (("reward", "ADDRESS", "visit-1", "2"), "Error: "),
        (("decide", "ADDRESS", "--unit", "two words"), "without spaces"),
        (("shadow", "set", "ADDRESS", "shop", "rcp-submx"), "did you mean"),
        (("export", "ADDRESS"), "is the address of a server"),
        (("status", "http://"), "is no address of a server"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_changes_nothing(
    served, command, run_here, words, sentence
):
    before = run_here("audit", served[0]).stdout
    found = run_here(*[served[1] if word == "ADDRESS" else word for word in words])
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert sentence in found.stderr
    assert run_here("audit", served[0]).stdout == before
    assert json.loads(command("decide", None))["action"] in ("A", "B")


def test_keys_are_added_listed_and_revoked(served, command, run_here):
    options = ("--scope", "reward", "--browser", "--rate", "5", "--name", "page")
    text = command("keys", "add", None, *options, "--expires", "2130-01-31").strip()
    number = text.split(".")[1]
    listed = command("keys", "list", None)
    # The time at which the other key was last used reaches the store within a minute.
    assert listed.splitlines()[-1] == run_here("keys", "list", served[0]).stdout.splitlines()[-1]
    assert f"{number}  page  reward  all bandits, for browsers, 5 requests a second, exp" in listed
    assert "is revoked" in command("keys", "revoke", None, number)
    assert number not in command("keys", "list", None)
    assert "(not-found)" in run_here("keys", "revoke", served[1], number).stderr
    audit = command("audit", None, "--last", 2)
    assert audit == run_here("audit", served[0], "--last", "2").stdout
    assert [line.split("  ")[2] for line in audit.splitlines()] == ["revoke-key", "add-key"]


def test_without_a_key_it_says_where_to_put_one(served, command, run_here, monkeypatch, tmp_path):
    _, address, key = served
    monkeypatch.delenv("SUBMAX_KEY")
    found = run_here("pause", address, "shop")
    assert (found.returncode, "SUBMAX_KEY" in found.stderr) == (2, True)
    assert "(unauthorized)" in found.stderr
    (tmp_path / "key").write_text(f"{key}\n")
    monkeypatch.setenv("SUBMAX_KEY_FILE", str(tmp_path / "key"))
    assert run_here("status", address).returncode == 0


def test_a_bandit_is_deleted_at_last(served, command, run_here):
    assert command("delete", None, "shop", "--yes").startswith("The bandit shop")
    assert "no bandits" in run_here("status", served[1]).stderr
