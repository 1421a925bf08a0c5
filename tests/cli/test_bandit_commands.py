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


def test_status_shows_every_arm_and_the_same_numbers_as_print(file, done):
    shown = done("status")
    assert "shop" in shown
    assert "rcp-adaptive" in shown
    assert "80 decisions" in shown
    rows = [line.split() for line in shown.splitlines()]
    arms = {row[0]: int(row[1]) for row in rows if row and row[0] in ("A", "B")}
    assert sorted(arms) == ["A", "B"]
    assert sum(arms.values()) == 80
    assert max(map(len, shown.splitlines()[:5])) <= 80
    notices = shown.count("Notice")
    with submax.open(file, background=False) as bandit:
        printed = str(bandit)
    assert [line for line in printed.splitlines() if line.startswith("  A")] == [
        line for line in shown.splitlines() if line.startswith("  A")
    ]
    done("pause", "shop")
    assert done("status").count("Notice") == notices + 1


def test_lift_agrees_with_the_means_below_it(file, done):
    shown = done("lift")
    assert "holdout (A)" in shown
    assert "control (B)" in shown
    assert "expected 50.00 %" in shown
    for report in json.loads(done("lift", "--json")):
        difference = report["mean"] - report["mean_of_group"]
        assert report["estimate"] == pytest.approx(difference)


def test_lift_without_decisions_says_so(tmp_path, done):
    place = ("--store", tmp_path / "new.db")
    rails = 'guard_rails={"holdout": 0.5, "baseline": "A"}'
    done("create", "page", "--actions", "A,B", rails, *place)
    assert "no decisions counted yet" in done("lift", *place)


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


def test_a_bandit_is_archived_and_resumed(file, done, refused):
    assert "(not-found)" in refused("archive", "other")
    done("archive", "shop")
    assert "(archived)" in refused("decide")
    done("resume", "shop")
    done("decide")
    assert "  archive  shop" in done("audit", "shop")


def test_arms_come_and_go(file, done, refused):
    done("add", "shop", "C", "--ramp", "0")
    done("pause", "shop", "C")
    assert "C (paused)" in done("status")
    done("resume", "shop", "C")
    done("retire", "shop", "C")
    assert "C (retired)" in done("status")
    refused("add", "shop", "C")


def test_versions_are_listed_published_and_rolled_back(file, done):
    listed = json.loads(done("versions", "--json"))
    assert [one["version"] for one in listed["versions"]] == [1]
    assert (listed["deciding"], listed["held"]) == (1, False)
    assert "version 0" in done("roll-back", "shop")
    assert json.loads(done("versions", "--json"))["held"]
    assert "version 1" in done("publish", "shop")
    assert done("versions").startswith("Version 1 is live (1 so far).")


def test_decisions_for_a_unit_are_the_same_until_it_is_erased(file, done, refused):
    first, second = (json.loads(done("decide", "--unit", "visitor-17")) for _ in range(2))
    assert first["unit"] == "visitor-17"
    assert first["id"] != second["id"]
    assert {**first, "id": ""} == {**second, "id": ""}
    assert "'age'" in refused("decide", "--context", "age")
    assert json.loads(done("erase", "shop", "visitor-17", "--json")) == {"decisions": 2}
    assert "visitor-17" not in done("audit")
    assert json.loads(done("status", "--json"))["counts"]["decisions"] == 82


def test_a_reward_is_sent_once_however_often(file, done, refused):
    done("set", "shop", "reward_wait=1e8")
    made = json.loads(done("decide", "--id", "visit-1"))
    receipts = [json.loads(done("reward", "shop", made["id"], 1)) for _ in range(2)]
    assert [one["repeated"] for one in receipts] == [False, True]
    assert "(conflict)" in refused("reward", "shop", "visit-1", 0)
    assert json.loads(done("reward", "shop", "unknown", 1))["status"] == "quarantined"
    assert "In quarantine: 1 reward " in done("status")
    for value in ("yes", "null", "true", "2", '{"click": 1}'):
        refused("reward", "shop", "visit-1", value)


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
        assert "(unknown-reward-name)" in refused("reward", name, "one", 1)


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
