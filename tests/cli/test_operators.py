"""Commands that show, change and use the bandits of a store."""

import json

import pytest

import submax

from .conftest import RAILS


@pytest.fixture
def file(shop, tmp_path):
    path = tmp_path / "shop.db"
    path.write_bytes(shop)
    return path


def settings_of(file):
    with submax.open(file, background=False) as bandit:
        return bandit.settings


def test_status_and_lift_show_every_arm_and_comparison(file, done):
    shown = done("status", file)
    assert "shop" in shown
    assert "rcp-adaptive" in shown
    assert "80 decisions" in shown
    rows = [line.split() for line in shown.splitlines()]
    arms = {row[0]: int(row[1]) for row in rows if row and row[0] in ("A", "B")}
    assert list(arms) == ["A", "B"]
    assert sum(arms.values()) == 80
    assert shown.count("NOTICE") == 1
    done("pause", file, "shop")
    assert done("status", file).count("NOTICE") == 2

    shown = done("lift", file)
    assert "holdout (A)" in shown
    assert "control (B)" in shown
    assert "expected 0.5" in shown


def test_settings_are_changed_in_parts_and_as_a_whole(file, done):
    done("set", file, "shop", "refit_rows=7", "policy=rcp-submax", "guard_rails.minimum=0.05")
    done("set", file, "shop", 'guard_rails={"burn_in": 10}', "archive_after=null")
    settings = settings_of(file)
    assert (settings.refit_rows, settings.policy) == (7, "rcp-submax")
    assert settings.archive_after is None
    assert settings.guard_rails == submax.GuardRails(minimum=0.05, burn_in=10, **RAILS)
    audit = done("audit", file)
    assert "command line  set  shop  refit_rows=7 policy=rcp-submax" in audit


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        (["refit_rows"], "'refit_rows'"),
        (["guard_rails.minimum=0.7"], "(guard-rail)"),
        (["reward_wait=3"], "reward_wait"),
        (["colour=red"], "'colour'"),
        (["policy=rcp-submax", "policy.kind=thompson"], "policy"),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(file, done, refused, changes, fact):
    before = settings_of(file)
    assert fact in refused("set", file, "shop", "keep_versions=5", *changes)
    assert settings_of(file) == before
    assert "  set  " not in done("audit", file)


def test_a_bandit_is_archived_and_resumed(file, done, refused):
    assert "(not-found)" in refused("archive", file, "other")
    done("archive", file, "shop")
    assert "(archived)" in refused("decide", file)
    done("resume", file, "shop")
    done("decide", file)
    assert "  archive  shop" in done("audit", file)


def test_decisions_for_a_unit_are_the_same(file, done, refused):
    first, second = (json.loads(done("decide", file, "--unit", "visitor-17")) for _ in range(2))
    assert first["unit"] == "visitor-17"
    assert first["id"] != second["id"]
    assert {**first, "id": ""} == {**second, "id": ""}
    assert "'age'" in refused("decide", file, "--context", "age")


def test_a_reward_is_sent_once_however_often(file, done, refused):
    made = json.loads(done("decide", file, "--id", "visit-1"))
    receipts = [json.loads(done("reward", file, made["id"], 1)) for _ in range(2)]
    assert [one["repeated"] for one in receipts] == [False, True]
    assert "(conflict)" in refused("reward", file, "visit-1", 0)
    assert json.loads(done("reward", file, "unknown", 1))["status"] == "quarantined"


@pytest.mark.parametrize("value", ["yes", "null", "true", "2", "[1, 0]", '{"click": 1}'])
def test_a_wrong_reward_is_refused_and_stores_nothing(file, done, refused, value):
    done("decide", file, "--id", "visit-1")
    refused("reward", file, "visit-1", value)
    assert not json.loads(done("reward", file, "visit-1", 1))["repeated"]


def test_rewards_have_names_and_slots(tmp_path, done, refused):
    rewards = {"click": 1, "purchase": 20}
    for name, options in (
        ("shop", {"actions": ["A", "B"], "rewards": rewards}),
        ("page", {"actions": {"title": ["A", "B"], "image": ["x"]}, "rewards": "slots"}),
    ):
        submax.open(tmp_path / "both.db", name=name, background=False, **options).close()
    place = tmp_path / "both.db"
    assert "--bandit" in refused("decide", place)
    for name, values in {
        "shop": [("1", "--name", "click"), ('{"purchase": 1}',)],
        "page": [("1", "--slot", "title"), ('{"image": 0}',)],
    }.items():
        done("decide", place, "--bandit", name, "--id", "one")
        for value in values:
            shown = done("reward", place, "one", *value, "--bandit", name)
            assert json.loads(shown)["status"] == "accepted"
        assert "(unknown-reward-name)" in refused("reward", place, "one", 1, "--bandit", name)


def test_alarms_are_shown_and_acknowledged(file, done):
    shown = done("alarms", "show", file)
    assert shown.startswith("ACTIVE ")
    assert "reward-rate: it has fallen" in shown
    done("alarms", "acknowledge", file, "shop")
    assert done("alarms", "show", file).startswith("over ")
    assert "  acknowledge-alarms  shop" in done("audit", file)


def test_the_store_is_read_from_a_variable_or_a_file(tmp_path, done, refused, monkeypatch):
    monkeypatch.delenv("SUBMAX_STORE", raising=False)
    monkeypatch.delenv("SUBMAX_STORE_FILE", raising=False)
    store, secret = tmp_path / "page.db", tmp_path / "secret"
    assert "STORE" in refused("keys", "list")
    monkeypatch.setenv("SUBMAX_STORE_FILE", str(secret))
    assert "SUBMAX_STORE_FILE" in refused("keys", "list")
    secret.write_text(f"{store}\n")
    done("keys", "add", "--scope", "admin", "--name", "operator")
    monkeypatch.delenv("SUBMAX_STORE_FILE")
    monkeypatch.setenv("SUBMAX_STORE", str(store))
    assert "operator" in done("keys", "list")
    assert done("audit") == done("audit", store) != ""
    # A store on the command line comes first.
    done("keys", "add", tmp_path / "other.db", "--scope", "admin", "--name", "other")
    assert "other" not in done("keys", "list")
