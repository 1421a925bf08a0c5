import json

import pytest
from click.testing import CliRunner, Result

import submax
from submax.cli import main
from submax.live.store.sqlite_store import SQLiteStore
from submax.testing import ManualClock

RAILS = {"holdout": 0.5, "baseline": "A", "control": "B", "control_share": 0.3}


def invoke(*arguments: object) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def done(*arguments: object) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: object) -> str:
    result = invoke(*arguments)
    assert result.exit_code != 0
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture
def file(tmp_path):
    path, clock = tmp_path / "shop.db", ManualClock()
    with submax.open(
        SQLiteStore(path, clock=clock),
        name="shop",
        actions=["A", "B"],
        guard_rails=RAILS,
        reward_wait=10,
        background=False,
        clock=clock,
    ) as bandit:
        made = bandit.decide_many([{}] * 80)
        bandit.reward_many([{"id": one.id, "value": float(one.action == "B")} for one in made])
        clock.now += 11
        bandit.refit()
    return path


def test_status_shows_every_arm_and_notices(file):
    shown = done("status", file)
    assert "Bandit 'shop': active, rcp-adaptive, version 1" in shown
    assert "80 decisions" in shown
    assert "95 % interval" in shown
    assert "NOTICE the control 'B' has the highest reward rate" in shown
    done("pause", file, "shop")
    assert "NOTICE the bandit is paused" in done("status", file)


def test_lift_shows_both_comparisons(file):
    shown = done("lift", file)
    assert "Lift against the holdout (A): " in shown
    assert "Lift against the control (B): " in shown
    assert "expected 0.5" in shown
    assert " to " in shown.splitlines()[0]


def test_settings_are_changed_in_parts_and_as_a_whole(file):
    done("set", file, "shop", "refit_rows=7", "policy=rcp-submax", "guard_rails.minimum=0.05")
    done("set", file, "shop", 'guard_rails={"burn_in": 10}', "archive_after=null")
    with submax.open(file, background=False) as bandit:
        settings = bandit.settings
    assert (settings.refit_rows, settings.policy) == (7, "rcp-submax")
    assert settings.archive_after is None
    assert settings.guard_rails == submax.GuardRails(minimum=0.05, burn_in=10, **RAILS)
    audit = done("audit", file)
    assert "command line  set  shop  refit_rows=7 policy=rcp-submax" in audit


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("refit_rows", "SETTING=VALUE"),
        ("guard_rails.minimum=0.7", "lower minimum (guard-rail)"),
        ("reward_wait=3", "cannot change once it decides"),
        ("colour=red", "unknown setting"),
        ("guard_rails=1", "guard_rails"),
    ],
)
def test_a_wrong_change_is_one_sentence_and_changes_nothing(file, change, words):
    assert words in refused("set", file, "shop", "keep_versions=5", change)
    assert "No change" in done("audit", file)


def test_parts_of_what_was_given_as_a_whole_are_refused(file):
    whole = refused("set", file, "shop", "policy=rcp-submax", "policy.kind=thompson")
    assert "as a whole and in parts" in whole


def test_a_bandit_that_does_not_exist_is_not_changed(file):
    assert "there is no bandit 'other'" in refused("pause", file, "other")


def test_a_bandit_is_archived_and_resumed(file):
    done("archive", file, "shop")
    assert "is archived" in refused("decide", file)
    assert done("resume", file, "shop") == "The bandit shop is active.\n"
    assert "archive  shop" in done("audit", file)


def test_decisions_for_a_unit_are_the_same(file):
    first, second = (json.loads(done("decide", file, "--unit", "visitor-17")) for _ in range(2))
    assert first["unit"] == "visitor-17"
    assert first["id"] != second["id"]
    assert {**first, "id": ""} == {**second, "id": ""}
    assert "FIELD=VALUE" in refused("decide", file, "--context", "age")


def test_a_reward_is_sent_once_however_often(file):
    made = json.loads(done("decide", file, "--id", "visit-1"))
    receipts = [json.loads(done("reward", file, made["id"], 1)) for _ in range(2)]
    assert [one["repeated"] for one in receipts] == [False, True]
    assert "already has the reward" in refused("reward", file, "visit-1", 0)
    assert "(conflict)" in refused("reward", file, "visit-1", 0)
    assert json.loads(done("reward", file, "unknown", 1))["status"] == "quarantined"


@pytest.mark.parametrize("value", ["yes", "null", "true", "2", "[1, 0]", '{"click": 1}'])
def test_a_wrong_reward_is_one_sentence_and_stores_nothing(file, value):
    done("decide", file, "--id", "visit-1")
    refused("reward", file, "visit-1", value)
    assert not json.loads(done("reward", file, "visit-1", 1))["repeated"]


def test_rewards_have_names_and_slots(tmp_path):
    rewards = {"click": 1, "purchase": 20}
    for name, options in (
        ("shop", {"actions": ["A", "B"], "rewards": rewards}),
        ("page", {"actions": {"title": ["A", "B"], "image": ["x"]}, "rewards": "slots"}),
    ):
        submax.open(tmp_path / "both.db", name=name, background=False, **options).close()
    place = tmp_path / "both.db"
    assert "name one of them with --bandit" in refused("decide", place)
    for name, values in {
        "shop": [("1", "--name", "click"), ('{"purchase": 1}',)],
        "page": [("1", "--slot", "title"), ('{"image": 0}',)],
    }.items():
        done("decide", place, "--bandit", name, "--id", "one")
        for value in values:
            shown = done("reward", place, "one", *value, "--bandit", name)
            assert json.loads(shown)["status"] == "accepted"
        wrong = refused("reward", place, "one", 1, "--bandit", name)
        assert "(unknown-reward-name)" in wrong
