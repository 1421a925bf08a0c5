"""Commands that create, show, change and use the bandits of a store."""

import json

import pytest

import submax

from .conftest import RAILS


@pytest.fixture
def file(shop, tmp_path, monkeypatch):
    """The store of all commands that name no other."""
    path = tmp_path / "shop.db"
    path.write_bytes(shop)
    monkeypatch.setenv("SUBMAX_STORE", str(path))
    return path


def settings_of(file):
    with submax.open(file, background=False) as bandit:
        return bandit.settings


def test_a_bandit_is_created_with_a_context_and_settings(tmp_path, done, refused):
    store = tmp_path / "new.db"
    said = done(
        *("create", "headlines", "--actions", "A,B,C", "--context", "country=de,fr"),
        *("--context", "age=number", "reward_wait=60", "--store", store),
    )
    assert "60 seconds" in said
    with submax.open(store, name="headlines", background=False) as bandit:
        assert bandit.menu.declaration == ["A", "B", "C"]
        assert bandit.settings.context.names == ("country", "age")
        assert bandit.settings.reward_wait == 60
    again = ("create", "headlines", "--actions", "A,B", "--store", store)
    assert "(conflict)" in refused(*again)
    made = json.loads(done("bandit", "list", "--json", "--store", store))
    assert made == ["headlines"]


def test_a_wrong_declaration_makes_no_file(tmp_path, refused):
    options = ("--store", tmp_path / "new.db")
    assert "'colour'" in refused("create", "page", "--actions", "A,B", "colour=red", *options)
    assert "--context" in refused("create", "page", "--actions", "A", "--context", "age", *options)
    assert list(tmp_path.iterdir()) == []


def test_a_policy_that_ignores_the_context_is_warned_of(tmp_path, done):
    store = ("--store", tmp_path / "new.db")
    made = ("create", "page", "--actions", "A,B", "--context", "age=number")
    assert "Warning" not in done(*made, *store)
    assert "Warning" in done("set", "page", "policy=thompson-1-9", *store)
    assert "Warning" not in done("set", "page", "policy=linear-thompson", *store)
    assert "Warning" not in done("set", "page", "refit_rows=3", *store)


def test_status_shows_every_arm_and_what_was_changed(file, done):
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


def test_lift_agrees_with_the_means_below_it(file, done):
    shown = done("lift")
    assert "holdout (A)" in shown
    assert "control (B)" in shown
    assert "expected 50.00 %" in shown
    for report in json.loads(done("lift", "--json")):
        difference = report["mean"] - report["mean_of_group"]
        assert report["estimate"] == pytest.approx(difference)


def test_settings_are_changed_in_parts_and_as_a_whole(file, done):
    done("set", "shop", "refit_rows=7", "policy=rcp-submax", "guard_rails.minimum=0.05")
    done("set", "shop", 'guard_rails={"burn_in": 10}', "no_reward_after=null")
    settings = settings_of(file)
    assert (settings.refit_rows, settings.policy) == (7, "rcp-submax")
    assert settings.guard_rails == submax.GuardRails(minimum=0.05, burn_in=10, **RAILS)
    assert done("audit").splitlines()[1].split("  ")[1:4] == ["command line", "set", "shop"]


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        (["refit_rows"], "'refit_rows'"),
        (["guard_rails.minimum=0.7"], "(guard-rail)"),
        (["refit_row=9"], "'refit_rows'"),
        (["policy=rcp-submax", "policy.kind=thompson"], "policy"),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(file, done, refused, changes, fact):
    before = settings_of(file)
    assert fact in refused("set", "shop", "keep_versions=5", *changes)
    assert settings_of(file) == before
    assert "  set  " not in done("audit")


def test_rewards_have_names_and_slots(tmp_path, done, refused, monkeypatch):
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


def test_old_decisions_are_exported_and_deleted(file, tmp_path, done, refused):
    out = ("export", "--out", tmp_path / "old.parquet", "--delete")
    assert "before" in refused(*out)
    assert "80 decisions" in done(*out, "--before", "2001-09-09T01:46:41")
    assert json.loads(done("decide"))["version"] == 1
    assert "1 decision in" in done("export", "--out", tmp_path / "new.parquet")
    assert "'yesterday'" in refused(*out, "--before", "yesterday")


def test_a_bandit_is_deleted_only_if_that_is_confirmed(file, invoke, done):
    assert invoke("delete", "shop").exit_code == 1
    assert done("list") == "shop\n"
    done("delete", "shop", "--yes")
    assert "  delete  shop" in done("audit")


def test_the_store_is_read_from_a_variable_or_a_file(tmp_path, done, refused, monkeypatch):
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
