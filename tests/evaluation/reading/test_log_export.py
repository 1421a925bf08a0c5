import pandas as pd
import pytest
from pyarrow import parquet

from submax.bandit.export import export
from submax.evaluation import Log

WAIT = 60.0
CONTEXT = {"age": float, "country": ["fr", "de"]}


@pytest.fixture
def shop(opened):
    """Opens a bandit with these declarations."""

    def make(**declaration):
        usual = {"context": CONTEXT, "policy": "linear-thompson", "reward_wait": WAIT}
        return opened(**{**usual, **declaration})

    return make


def decided(bandit, count, reward=1.0, **options):
    chosen = []
    for number in range(count):
        context = {"age": float(number), "country": ["fr", "de"][number % 2]}
        chosen.append(bandit.decide(context, **options))
        if reward is not None:
            bandit.reward(chosen[-1].id, reward)
    return chosen


def exported(bandit, path):
    export(bandit.store, bandit.name, path)
    return path


def matured(bandit, clock, path):
    """The log of all decisions up to now, and of one that is pending."""
    clock.now += 2 * WAIT
    decided(bandit, 1, reward=None)
    return Log.read(exported(bandit, path))


def test_the_export_of_a_bandit_is_a_log_with_its_schema(shop, clock, tmp_path, mentioned):
    bandit = shop()
    made = decided(bandit, 20)
    log = matured(bandit, clock, tmp_path / "log.parquet")
    assert [log.schema.menu.action(row) for row in log.action] == [one.action for one in made]
    assert log.propensity.tolist() == [one.propensity for one in made]
    assert log.reward.tolist() == [1.0] * 20
    assert log.context[:, 0].tolist() == list(range(20))
    assert log.context[:, 1].tolist() == [0.0, 1.0] * 10
    assert log.schema.menu.declaration == ["A", "B", "C"]
    assert log.schema.context.names == ("age", "country")
    assert mentioned(log.notes, 1, "pending")


def test_what_did_not_come_to_be_learned_is_counted_and_left_out(shop, clock, tmp_path, mentioned):
    bandit = shop(guard_rails={"holdout": 0.3, "baseline": "B"})
    decided(bandit, 60)
    decided(bandit, 3, reward=None, activate=False)
    clock.now += 2 * WAIT
    decided(bandit, 4, reward=None)
    path = exported(bandit, tmp_path / "log.parquet")
    status = parquet.read_table(path).column("status").to_pylist()
    assert {"learned", "held out", "never activated", "pending"} <= set(status)
    log = Log.read(path)
    assert len(log) == status.count("learned")
    for one in set(status) - {"learned"}:
        assert mentioned(log.notes, status.count(one), one)


def test_choices_that_were_retired_since_are_still_read(shop, clock, tmp_path):
    bandit = shop()
    made = decided(bandit, 40)
    bandit.retire("A")
    bandit.add("D")
    clock.now += 2 * WAIT
    made += decided(bandit, 10)
    log = matured(bandit, clock, tmp_path / "log.parquet")
    assert "A" in [one.action for one in made]
    assert [log.schema.menu.action(row) for row in log.action] == [one.action for one in made]
    assert [log.eligible_sets[place] for place in log.eligible_set] == [((0, 1, 2),)] * 40 + [
        ((1, 2, 3),)
    ] * 10
    statuses = {one.name: one.status for one in log.schema.menu.slots[0].choices}
    assert statuses == {"A": "retired", "B": "active", "C": "active", "D": "active"}
    assert log.eligible_sets[0] == ((0, 1, 2, 3),)
    assert log.schema.menu.active == ((1, 2, 3),)


def test_an_export_is_known_after_it_went_through_a_frame_or_a_table(shop, clock, tmp_path):
    bandit = shop()
    decided(bandit, 30, eligible=["A", "B"])
    clock.now += 2 * WAIT
    decided(bandit, 3)
    path = exported(bandit, tmp_path / "log.parquet")
    log = Log.read(path)
    assert Log.read(parquet.read_table(path)).fingerprint == log.fingerprint
    frame = Log.read(pd.read_parquet(path), schema=log.schema)
    assert frame.fingerprint == log.fingerprint
    assert frame.eligible_sets == log.eligible_sets
    assert frame.notes[:1] == log.notes
    without = parquet.read_table(path).drop(["status"])
    assert len(Log.read(without)) == 33


@pytest.mark.filterwarnings("ignore::submax.ContextIgnoredWarning")
@pytest.mark.parametrize(
    "actions", [{"title": ["A", "B"], "layout": ["wide", "narrow"]}, {"price": (1.0, 10.0)}]
)
def test_the_export_of_slots_and_of_intervals_is_read(actions, shop, clock, tmp_path):
    bandit = shop(actions=actions, policy="random")
    made = decided(bandit, 5)
    log = matured(bandit, clock, tmp_path / "log.parquet")
    assert [log.schema.menu.action(row) for row in log.action] == [one.action for one in made]
    assert log.propensity.tolist() == [one.propensity for one in made]
