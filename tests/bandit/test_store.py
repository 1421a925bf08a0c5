"""What a store promises, in SQLite and in PostgreSQL."""

import os
import sqlite3
from contextlib import closing
from itertools import count

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from refusals import raises_code

from submax.bandit.store import open_store
from submax.bandit.tables import (
    DECISION_COLUMNS,
    MAX_EARLY_OF_SOURCE,
    REWARD_COLUMNS,
    DecisionRow,
    RewardRow,
    Statement,
    UnitRow,
    decision_is_whole,
    reward_is_whole,
)

WAIT, QUARANTINE = 10.0, 20.0
DECLARE = "insert into bandit (name, created, settings, actions) values (:name, 0, '{}', '[]')"
BOTH = ["sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgresql"))]


@pytest.fixture(params=BOTH)
def place(request, tmp_path):
    if request.param == "postgres":
        return request.getfixturevalue("postgres_address")
    return tmp_path / "store.db"


@pytest.fixture
def store(place, clock):
    with open_store(place, clock=clock) as opened:
        yield opened


def decided(identifier, action="a", **columns):
    return DecisionRow(identifier, 3, action, 0.5, **columns)


def decide(store, *ids, bandit=1):
    return store.write_decisions(bandit, [decided(each) for each in ids]).result(30)


def reward(store, identifier, value=1.0, key="reward", bandit=1, source=""):
    row = RewardRow(identifier, key, value, source=source)
    return store.write_rewards(bandit, [row], WAIT, QUARANTINE).result(30)[0]


def ids(store, bandit=1):
    return [each for (each,) in store.select("select id from decision order by n")]


def is_whole(store):
    decisions = store.select(f"select {DECISION_COLUMNS} from decision")
    rewards = store.select(f"select {REWARD_COLUMNS} from reward")
    return all(map(decision_is_whole, decisions)) and all(map(reward_is_whole, rewards))


# Decisions and rewards


def test_a_decision_comes_back_as_it_was_written(store, clock):
    clock.now = 1_795_018_623.743893
    row = decided(
        "a", unit="ü", context='{"country":"d\\u0000e","x":0.1}', eligible='["a"]',
        probabilities="[0.5,0.5]", activated=None, paused=True, assignment="control",
        assigned_since=2, holdout_share=0.1, control_share=1 / 3,
    )  # fmt: skip
    (written,) = store.write_decisions(1, [row]).result()
    assert written.new
    assert written.row.at == clock.now
    (again,) = store.write_decisions(1, [decided("a", action="b")]).result()
    assert not again.new
    for name in set(DecisionRow.__struct_fields__) - {"checksum"}:
        assert getattr(again.row, name) == getattr(row, name)
    assert is_whole(store)


OPERATION = st.one_of(
    st.tuples(st.just("decide"), st.lists(st.sampled_from("abc"), min_size=1, max_size=3)),
    st.tuples(
        st.just("reward"),
        st.lists(
            st.tuples(st.sampled_from("abc"), st.sampled_from("kl"), st.sampled_from([0.0, 1.5])),
            min_size=1,
            max_size=3,
        ),
    ),
    st.tuples(st.just("activate"), st.lists(st.sampled_from("abc"), min_size=1, max_size=2)),
    st.tuples(st.just("pass"), st.sampled_from([-100.0, 0.5, 9.0, 10.0, 25.0])),
)
BANDITS = count(10)


class Dictionaries:
    """What a store does, in dictionaries."""

    def __init__(self, now):
        self.now, self.at = now, 0.0
        self.decisions, self.rewards, self.early, self.activated = {}, {}, {}, {}
        self.orphans = 0

    def time(self):
        self.at = max(self.at, self.now)
        return self.at

    def decide(self, ids):
        at, outcomes = self.time(), []
        for each in ids:
            outcomes.append(each not in self.decisions)
            if each in self.decisions:
                continue
            self.decisions[each] = at
            for identifier, key in [pair for pair in self.early if pair[0] == each]:
                value, until = self.early.pop((identifier, key))
                if until > at:
                    self.rewards[identifier, key] = value, False
                else:
                    self.orphans += 1
        return outcomes

    def reward(self, rewards):
        at, outcomes = self.time(), []
        expired = [pair for pair, (_, until) in self.early.items() if until <= at]
        self.orphans += len(expired)
        for pair in expired:
            del self.early[pair]
        for each, key, value in rewards:
            pair, known = (each, key), each in self.decisions
            stored = self.rewards if known else self.early
            repeated = pair in stored
            if not repeated and known:
                self.rewards[pair] = value, at - self.decisions[each] >= WAIT
            elif not repeated:
                self.early[pair] = value, at + QUARANTINE
            found, second = stored[pair]
            status = ("late" if second else "accepted") if known else "quarantined"
            outcomes.append(("conflict" if found != value else status, repeated, found))
        return outcomes

    def activate(self, ids):
        at, outcomes = self.time(), []
        for each in ids:
            if each not in self.decisions:
                outcomes.append(("unknown", False))
            elif each in self.activated:
                outcomes.append(("accepted", True))
            elif at - self.decisions[each] >= WAIT:
                outcomes.append(("late", False))
            else:
                self.activated[each] = at - self.decisions[each]
                outcomes.append(("accepted", False))
        return outcomes


@given(st.lists(OPERATION, max_size=12))
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_store_does_what_dictionaries_do(store, clock, operations):
    bandit, model = next(BANDITS), Dictionaries(clock.now)
    for kind, values in operations:
        if kind == "pass":
            clock.now = model.now = clock.now + values
        elif kind == "decide":
            rows = [decided(each, activated=None) for each in values]
            written = store.write_decisions(bandit, rows).result()
            assert [each.new for each in written] == model.decide(values)
        elif kind == "reward":
            rows = [RewardRow(*each) for each in values]
            outcomes = store.write_rewards(bandit, rows, WAIT, QUARANTINE).result()
            assert [each[:3] for each in outcomes] == model.reward(values)
        else:
            outcomes = store.activate(bandit, values, WAIT).result()
            assert list(map(tuple, outcomes)) == model.activate(values)
        assert store.now(bandit) == max(model.at, model.now)
    of_bandit = {"bandit": bandit}
    decisions = store.select(
        "select id, at, activated, n from decision where bandit = :bandit order by n", **of_bandit
    )
    assert {each: at for each, at, _, _ in decisions} == model.decisions
    assert {each: after for each, _, after, _ in decisions if after is not None} == model.activated
    rewards = store.select(
        "select id, key, value, late, reward.at, reward.n from reward join decision "
        "on reward.decision = decision.n where reward.bandit = :bandit",
        **of_bandit,
    )
    assert {(each, key): (value, late) for each, key, value, late, _, _ in rewards} == model.rewards
    early = store.select(
        "select id, key, value, until from early_reward where bandit = :bandit", **of_bandit
    )
    assert {(each, key): rest for each, key, *rest in early} == {
        pair: list(rest) for pair, rest in model.early.items()
    }
    counts = store.select(
        "select decisions, rewards, late_rewards, orphans from counts where bandit = :bandit",
        **of_bandit,
    )
    late = sum(is_late for _, is_late in model.rewards.values())
    expected = (len(model.decisions), len(model.rewards), late, model.orphans)
    assert [expected] == counts or not any(expected)
    times = sorted([(row[3], row[1]) for row in decisions] + [(row[5], row[4]) for row in rewards])
    assert [at for _, at in times] == sorted(at for _, at in times)
    assert is_whole(store)


def test_early_rewards_of_one_source_do_not_push_out_those_of_others(store):
    reward(store, "other", source="page")
    rows = [RewardRow(f"wrong{n}", "reward", 1.0, None, "key") for n in range(MAX_EARLY_OF_SOURCE)]
    store.write_rewards(1, rows, WAIT, QUARANTINE).result()
    reward(store, "one more", source="key")
    assert store.select("select count(*) from early_reward") == [(MAX_EARLY_OF_SOURCE + 1,)]
    assert store.select("select dropped from counts") == [(1,)]
    assert {written.new for written in decide(store, "wrong0", "other", "one more")} == {True}
    assert store.select("select rewards from counts") == [(2,)]


def test_the_first_pin_of_a_unit_decides(store):
    pins = [UnitRow("u", "p", 1, "a", 0.5, None, "[0.5,0.5]"), UnitRow("u", "p", 2, "b", 0.5)]
    other = UnitRow("u", "q", 3, "c", 0.5)
    first, second, third = store.pin_units(1, [*pins, other]).result()
    assert first == second
    assert (first.action, third.action) == ("a", "c")
    assert store.pin_units(1, [pins[1]]).result() == [first]


# Transactions


def test_calls_that_wait_share_a_transaction_and_a_bad_value_fails_only_its_own_call(store):
    good = [store.write_decisions(1, [decided(f"good{number}")]) for number in range(20)]
    bad = store.write_decisions(1, [decided("bad", action=None)])
    good += [store.write_decisions(2, [decided(f"more{number}")]) for number in range(20)]
    with raises_code("invalid-input"):
        bad.result(30)
    assert all(each.result(30)[0].new for each in good)
    with pytest.raises(ValueError, match="surrogates"):
        store.write_decisions(1, [decided("bad", unit="\ud800")])
    assert len(ids(store)) == 40
    assert decide(store, "bad")[0].new


def test_statements_are_executed_together_or_not_at_all(store):
    ((changed, rows),) = store.execute([(DECLARE + " returning n", {"name": "shop"})])
    assert changed == 1
    bandit = rows[0][0]
    with raises_code("invalid-input"):
        store.execute([(DECLARE, {"name": "page"}), (DECLARE, {"name": "shop"})])
    assert store.select("select name from bandit") == [("shop",)]
    audit = ("insert into setting values (:name, 'x')", {"name": "done"})
    assert store.change(bandit, 1, [audit], settings='{"a":1}', held=True)
    assert not store.change(bandit, 1, [("delete from setting", {})], settings="{}")
    expected = [('{"a":1}', 1, 2)]
    assert store.select("select settings, held, revision from bandit") == expected
    assert store.select("select value from setting where name = 'done'") == [("x",)]
    with raises_code("conflict"):
        store.execute([("delete from bandit", {}), Statement("delete from unit", {}, True)])
    assert store.select("select count(*) from bandit") == [(1,)]
    with raises_code("invalid-input"):
        store.execute([("insert into setting values ('no value', null)", {})])


def test_a_stream_has_all_rows_as_they_were_when_it_began(store):
    store.write_decisions(1, [decided(str(number)) for number in range(25_000)]).result()
    batches = store.stream("select id from decision where bandit = :bandit order by n", bandit=1)
    first = next(batches)
    decide(store, "later")
    assert [each for batch in (first, *batches) for (each,) in batch] == [
        str(n) for n in range(25_000)
    ]
    unfinished = store.stream("select id from decision")
    next(unfinished)
    unfinished.close()


def test_a_closed_store_and_a_forked_process_are_refused(store):
    decide(store, "a")
    read, write = os.pipe()
    if os.fork() == 0:
        refused = 0
        for call in (lambda: decide(store, "b"), lambda: ids(store), lambda: store.lead("fit")):
            try:
                call()
            except Exception as error:
                refused += getattr(error, "code", "") == "store-unavailable"
        os.write(write, str(refused).encode())
        os._exit(0)
    assert os.read(read, 10) == b"3"
    os.wait()
    os.close(read)
    os.close(write)
    assert ids(store) == ["a"]
    store.close()
    for call in (lambda: decide(store, "b"), lambda: ids(store)):
        with raises_code("store-unavailable"):
            call()
    store.close()


# Opening


def execute(place, *statements):
    connected = psycopg.connect if isinstance(place, str) else sqlite3.connect
    with closing(connected(place)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def test_what_was_written_is_there_after_opening_again_and_numbers_go_on(place, clock):
    with open_store(place, clock=clock) as store:
        (first,) = decide(store, "a")
        reward(store, "b")
        store.execute([("delete from decision", {})])
    clock.now -= 50
    with open_store(place, clock=clock) as store:
        (second,) = decide(store, "b")
        assert second.row.n > first.row.n
        assert second.row.at == first.row.at
        assert store.select("select value from reward") == [(1.0,)]


def test_a_reader_sees_what_is_committed_and_does_not_write(place):
    with open_store(place) as store, open_store(place, read_only=True) as reader:
        for number in range(3):
            decide(store, str(number))
            assert ids(reader) == ids(store)
        assert store.lead("fit")
        assert not reader.lead("fit")
        for write in (lambda: decide(reader, "x"), lambda: reader.execute([(DECLARE, {})])):
            with raises_code("store-unavailable"):
                write()


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("create table submax_schema (version integer)", "old-store"),
        ("create table decision (n integer)", "invalid-input"),
        ("update setting set value = '99'", "invalid-input"),
    ],
)
def test_other_tables_and_other_versions_are_refused(place, statement, code, read_only):
    if "setting" in statement:
        open_store(place).close()
    execute(place, statement)
    with raises_code(code):
        open_store(place, read_only=read_only)
