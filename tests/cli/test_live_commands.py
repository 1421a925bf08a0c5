"""Commands on bandits, keys and stores."""

import json
import sqlite3
from contextlib import closing

import pyarrow.parquet as pq
import pytest

import submax
from submax.bandit.sqlite import PAGE_BYTES
from submax.bandit.store import open_store

from .conftest import RAILS, done, files, invoke, refused


def settings_of(file):
    with submax.open(file, background=False) as bandit:
        return bandit.settings


def test_a_bandit_is_created_with_a_context_and_settings(tmp_path):
    store = tmp_path / "new.db"
    said = done(
        *("create", "headlines", "--actions", "A,B,C", "--context", "country=de,fr"),
        *("--context", "age=number", "reward_wait=60", "policy=linucb,alpha=2", "--store", store),
    )
    assert "60 seconds" in said
    with submax.open(store, name="headlines", background=False) as bandit:
        assert bandit.menu.declaration == ["A", "B", "C"]
        assert bandit.settings.context.names == ("country", "age")
        assert bandit.settings.reward_wait == 60
        assert bandit.settings.policy["name"] == "linucb,alpha=2"
    again = ("create", "headlines", "--actions", "A,B", "--store", store)
    assert "(conflict)" in refused(*again)
    made = json.loads(done("bandit", "list", "--json", "--store", store))
    assert made == ["headlines"]


def test_a_wrong_declaration_makes_no_file(tmp_path):
    options = ("--store", tmp_path / "new.db")
    assert "'colour'" in refused("create", "page", "--actions", "A,B", "colour=red", *options)
    assert "--context" in refused("create", "page", "--actions", "A", "--context", "age", *options)
    assert list(tmp_path.iterdir()) == []


def test_a_policy_that_ignores_the_context_is_warned_of(tmp_path):
    store = ("--store", tmp_path / "new.db")
    made = ("create", "page", "--actions", "A,B", "--context", "age=number")
    assert "Warning" not in done(*made, *store)
    assert "Warning" in done("set", "page", "policy=thompson-1-9", *store)
    assert "Warning" not in done("set", "page", "policy=linear-thompson", *store)
    assert "Warning" not in done("set", "page", "refit_rows=3", *store)


def test_status_shows_every_arm_and_what_was_changed(file):
    shown = done("status")
    rows = [line.split() for line in shown.splitlines()]
    arms = {row[0]: int(row[1]) for row in rows if row and row[0] in ("A", "B")}
    assert sorted(arms) == ["A", "B"]
    assert sum(arms.values()) == 80
    assert max(map(len, shown.splitlines()[:5])) <= 80
    done("add", "shop", "C", "--ramp", "0")
    done("pause", "shop", "C")
    assert "C (paused)" in done("status")
    done("retire", "shop", "C")
    assert "C (retired)" in done("status")
    assert "version 0" in done("roll-back", "shop")
    assert "Version 0 is live (1 so far), held" in done("versions")


def test_lift_agrees_with_the_means_below_it(file):
    shown = done("lift")
    assert "holdout (A)" in shown
    assert "control (B)" in shown
    assert "expected 50.00 %" in shown
    for report in json.loads(done("lift", "--json")):
        difference = report["mean"] - report["mean_of_group"]
        assert report["estimate"] == pytest.approx(difference)


def test_settings_are_changed_in_parts_and_as_a_whole(file):
    text = "epsilon-greedy-0.1,epsilon=0.3@greedy"
    done("set", "shop", "refit_rows=7", f"policy={text}", "guard_rails.minimum=0.05")
    done("set", "shop", 'guard_rails={"burn_in": 10}', "no_reward_after=null")
    settings = settings_of(file)
    assert (settings.refit_rows, settings.policy["name"]) == (7, text)
    assert settings.guard_rails == submax.GuardRails(minimum=0.05, burn_in=10, **RAILS)
    assert done("audit").splitlines()[1].split("  ")[1:4] == ["command line", "set", "shop"]


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        (["refit_rows"], "'refit_rows'"),
        (["guard_rails.minimum=0.7"], "(guard-rail)"),
        (["refit_row=9"], "'refit_rows'"),
        (["policy=rcp-submax", "policy.kind=thompson"], "policy"),
        (["policy=ucb1,pending=9"], "pending"),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(file, changes, fact):
    before = settings_of(file)
    assert fact in refused("set", "shop", "keep_versions=5", *changes)
    assert settings_of(file) == before
    assert "  set  " not in done("audit")


def test_rewards_have_names_and_slots(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBMAX_STORE", str(tmp_path / "both.db"))
    rewards = 'rewards={"click": 1, "purchase": 20}'
    done("create", "shop", "--actions", "A,B", rewards)
    done("create", "page", "--actions", "title=A,B", "--actions", "image=x", "rewards=slots")
    assert "page, shop" in refused("decide")
    for name, values in {
        "shop": [("1", "--name", "click"), ('{"purchase": 1}',)],
        "page": [("1", "--slot", "title"), ('{"image": 0}',)],
    }.items():
        done("decide", name, "--id", "one")
        for value in values:
            shown = done("reward", name, "one", *value)
            assert json.loads(shown)["status"] == "accepted"
        for wrong in (1, "yes", "null", '{"other": 1}'):
            refused("reward", name, "one", wrong)


def test_old_decisions_are_exported_and_deleted(file, tmp_path):
    out = ("export", "--out", tmp_path / "old.parquet", "--delete")
    assert "before" in refused(*out)
    assert "80 decisions" in done(*out, "--before", "2001-09-09T01:46:41")
    assert json.loads(done("decide"))["version"] == 1
    assert "1 decision in" in done("export", "--out", tmp_path / "new.parquet")
    assert "'yesterday'" in refused(*out, "--before", "yesterday")


def test_a_bandit_is_deleted_only_if_that_is_confirmed(file):
    assert invoke("delete", "shop").exit_code == 1
    assert done("list") == "shop\n"
    done("delete", "shop", "--yes")
    assert "  delete  shop" in done("audit")


def test_the_store_is_read_from_a_variable_or_a_file(tmp_path, monkeypatch):
    monkeypatch.delenv("SUBMAX_STORE", raising=False)
    monkeypatch.delenv("SUBMAX_STORE_FILE", raising=False)
    store, secret = tmp_path / "page.db", tmp_path / "secret"
    assert "--store" in refused("list")
    monkeypatch.setenv("SUBMAX_STORE_FILE", str(secret))
    assert "SUBMAX_STORE_FILE" in refused("list")
    secret.write_text(f"{store}\n")
    done("create", "page", "--actions", "A,B")
    monkeypatch.delenv("SUBMAX_STORE_FILE")
    monkeypatch.setenv("SUBMAX_STORE", str(store))
    assert done("list") == "page\n"
    # A store on the command line comes first.
    done("create", "other", "--actions", "A", "--store", tmp_path / "other.db")
    assert done("list") == "page\n"


def test_export_writes_decisions_with_their_rewards(file, tmp_path):
    out = tmp_path / "out.parquet"
    done("export", "--out", out)
    rows = pq.read_table(out).to_pylist()
    assert [row["id"] for row in rows] == [f"d{number}" for number in range(80)]
    assert all(row["reward"] == (row["action"] == "B") for row in rows)
    assert str(tmp_path / "none") in refused("export", "--out", tmp_path / "none" / "out.parquet")
    open_store(tmp_path / "empty.db").close()
    refused("export", "--store", tmp_path / "empty.db")


def test_a_store_is_a_log(file, tmp_path):
    done("export", "--out", tmp_path / "out.parquet")
    said = [
        done("evaluate", log, "--policy", "always=A", "--estimator", "ips", "--out", tmp_path / "e")
        for log in (file, tmp_path / "out.parquet")
    ]
    assert said[0] == said[1]
    options = ("--policy", "random", "--bandit", "none")
    assert "'none'" in refused("learn", file, *options)
    assert "(unused-option)" in refused("learn", tmp_path / "out.parquet", *options)


def test_export_needs_to_know_which_of_several_bandits(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUBMAX_STORE", "two.db")
    for name in ("one", "two"):
        submax.open("two.db", name=name, actions=["A"], background=False).close()
    assert "one, two" in refused("export")
    assert "'twoo'" in refused("export", "twoo")
    assert list(tmp_path.glob("*.parquet")) == []
    done("export", "two")
    assert [path.name for path in tmp_path.glob("*.parquet")] == ["two.parquet"]


def problem(file) -> str:
    """All damage that doctor finds."""
    result = invoke("doctor", file)
    assert result.exit_code == 1, result.output
    found = [line for line in result.stdout.splitlines() if line.startswith("DAMAGE")]
    assert found, result.stdout
    return "\n".join(found)


def changed(file, sql):
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute(sql).rowcount > 0
        connection.commit()


def test_doctor_finds_a_damaged_model_and_a_damaged_reward(file):
    said = done("doctor", file)
    assert "DAMAGE" not in said
    assert "shop: 80 decisions, 80 rewards, 0 late" in said
    changed(file, "update version set model = zeroblob(length(model))")
    # The model is damaged, and it is that of the version that decides.
    assert problem(file).count("version 1") == 2
    changed(file, "update reward set value = 0.5 where value = 1")
    assert "reward" in problem(file)
    changed(file, "delete from decision where id = 'd3'")
    problem(file)


def test_doctor_finds_damage_in_every_page_and_a_missing_end(file, tmp_path):
    whole = file.read_bytes()
    for page in range(1, len(whole) // PAGE_BYTES):
        begin = page * PAGE_BYTES
        copy = tmp_path / f"damaged-{page}.db"
        copy.write_bytes(whole[:begin] + b"\xff" * 64 + whole[begin + 64 :])
        problem(copy)
    copy = tmp_path / "cut.db"
    copy.write_bytes(whole[: len(whole) // 2 // PAGE_BYTES * PAGE_BYTES])
    assert invoke("doctor", copy).exit_code == 1


@pytest.mark.parametrize("command", ["backup", "copy"])
def test_a_copy_can_be_opened_in_place_of_the_store(file, tmp_path, command):
    copy = tmp_path / "copy.db"
    done(command, file, copy)
    refused(command, file, copy)
    done("doctor", copy)
    with submax.open(copy, name="shop", background=False) as bandit:
        assert bandit.decide(id="d79").repeated
        assert bandit.version == 1


@pytest.mark.parametrize("command", ["export --store STORE", "backup STORE COPY", "doctor STORE"])
def test_what_is_no_store_is_refused_and_not_touched(tmp_path, command):
    none, text, others, folder = (
        tmp_path / f"{name}.db" for name in ("none", "text", "others", "folder")
    )
    text.write_text("not a database at all " * 500)
    with closing(sqlite3.connect(others)) as connection:
        connection.execute("CREATE TABLE thesis (text)")
    folder.mkdir()
    before = [text.read_bytes(), others.read_bytes()]

    def words(store):
        places = {"STORE": store, "COPY": tmp_path / "copy.db"}
        return [places.get(word, word) for word in command.split()]

    assert str(none) in refused(*words(none))
    found = invoke(*words(text))
    # To doctor this is damage.
    assert found.exit_code == (1 if command == "doctor STORE" else 2)
    assert str(text) in found.output
    assert "thesis" in refused(*words(others))
    assert "is a folder" in refused(*words(folder))
    assert [text.read_bytes(), others.read_bytes()] == before
    assert files(tmp_path) == ["folder.db", "others.db", "text.db"]


def test_keys_are_added_listed_and_revoked(tmp_path, monkeypatch):
    monkeypatch.setenv("SUBMAX_STORE", str(tmp_path / "page.db"))
    added = invoke("keys", "add", "--scope", "decide", "--scope", "read", "--bandit", "page")
    _, number, secret = added.stdout.strip().split(".")
    assert number in added.stderr
    assert "--scope admin" not in invoke("keys", "add", "--scope", "admin").stderr
    lines = sorted(done("keys", "list").splitlines(), key=lambda line: "admin" in line)
    assert lines[0].startswith(f"{number}  decide, read  page")
    assert "  admin  " in lines[1]
    assert secret not in "".join(lines)
    done("keys", "revoke", number)
    assert done("keys", "list").splitlines() == lines[1:]
    assert "(not-found)" in refused("keys", "revoke", number)


def test_a_wrong_key_is_not_made_and_no_file_either(tmp_path):
    for options in ("--scope root", "--scope read --rate nan", "--scope read --expires soon"):
        refused("keys", "add", *options.split(), "--store", tmp_path / "new.db")
    assert files(tmp_path) == []
