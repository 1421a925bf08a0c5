"""What a store promises, in SQLite and in PostgreSQL."""

import gc
import math
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import chain, count, product
from random import Random
from threading import Timer

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from postgres_server import PASSWORD
from refusals import raises_code
from waiting import wait_until

from submax.bandit import postgres as postgres_module
from submax.bandit.sqlite import PATH_KEY
from submax.bandit.store import copy_store, open_store
from submax.bandit.tables import (
    MAX_EARLY_OF_SOURCE,
    TABLES,
    TICK,
    DecisionRow,
    RewardRow,
    Statement,
    UnitRow,
)
from submax.bandit.writing import LONGEST_STEP
from submax.core.errors import Error

WAIT, QUARANTINE = 10.0, 20.0
DECLARE = "insert into bandit (name, created, settings, actions) values (:name, 0, '{}', '[]')"


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


# Decisions and rewards


def test_a_decision_comes_back_as_it_was_written(store, clock):
    clock.now = 1_795_018_623.743893
    row = decided(
        "a", unit="ü", context='["d\\u0000e",0.1]', eligible='["a"]',
        probabilities="[0.5,0.5]", activated=None, paused=True, assignment="control",
        assigned_since=2, holdout_share=0.1, control_share=1 / 3,
    )  # fmt: skip
    (written,) = store.write_decisions(1, [row]).result()
    assert written.new
    assert written.row.at == math.floor(clock.now / TICK) * TICK
    (again,) = store.write_decisions(1, [decided("a", action="b")]).result()
    assert not again.new
    for name in set(DecisionRow.__struct_fields__) - {"checksum"}:
        assert getattr(again.row, name) == getattr(row, name)
    assert list(store.damage()) == []


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
    st.tuples(st.just("pass"), st.sampled_from([-1e6, -100.0, 0.5, 9.0, 10.0, 25.0, 1e6])),
)
BANDITS = count(10)


class Dictionaries:
    """What a store does, in dictionaries."""

    def __init__(self, now):
        self.now, self.at, self.shown = now, 0.0, now
        self.decisions, self.rewards, self.early, self.activated = {}, {}, {}, {}
        self.orphans = 0

    def time(self):
        """The clock's; after it was set back, time goes on at half of its speed."""
        passed = min(max(0.0, self.now - self.shown), LONGEST_STEP)
        half = math.floor(passed / 2 / TICK) * TICK
        return max(self.now, self.at + half)

    def write(self):
        self.at, self.shown = self.time(), self.now
        return self.at

    def forget(self):
        for pair in [pair for pair, (_, until) in self.early.items() if until <= self.at]:
            self.orphans += self.early.pop(pair) is not None

    def decide(self, ids):
        at, outcomes = self.write(), []
        self.forget()
        for each in ids:
            outcomes.append(each not in self.decisions)
            if each in self.decisions:
                continue
            self.decisions[each] = at
            for identifier, key in [pair for pair in self.early if pair[0] == each]:
                value, _ = self.early.pop((identifier, key))
                self.rewards[identifier, key] = value, False
        return outcomes

    def reward(self, rewards):
        at, outcomes = self.write(), []
        self.forget()
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
        at, outcomes = self.write(), []
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
        assert store.now(bandit) == model.time()
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
    assert list(store.damage()) == []


def test_an_early_reward_is_known_to_the_transaction_that_writes_its_decision(store):
    reward(store, "a", 0.0)
    rows = [RewardRow("a", "reward", 1.0), RewardRow("a", "reward", 0.0), RewardRow("a", "k", 2.0)]
    together = {
        "rewards": [(row, WAIT, QUARANTINE) for row in rows], "decisions": [decided("a")]
    }  # fmt: skip
    outcomes = store._database.transact({1: together})
    statuses = [each[:3] for each in outcomes[1, "rewards"]]
    assert statuses == [("conflict", True, 0.0), ("accepted", True, 0.0), ("accepted", False, 2.0)]


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
    change = "update bandit set settings = '[1]', held = :held where n = :n"
    store.execute([Statement(change, {"n": bandit, "held": True}, True)])
    assert store.select("select settings, held from bandit") == [("[1]", 1)]
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
    rows = [*first, *chain.from_iterable(batches)]
    assert [each for (each,) in rows] == [str(number) for number in range(25_000)]
    unfinished = store.stream("select id from decision")
    next(unfinished)
    unfinished.close()


# Another test of this process may have loaded JAX, which warns of every fork.
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
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


# Deleting, copying, searching for damage


def filled(store):
    """Decisions with rewards, of two bandits, and something in the other tables."""
    store.execute([(DECLARE, {"name": "shop"}), (DECLARE, {"name": "page"})])
    for bandit, number in product((1, 2), range(40)):
        rows = [decided(f"{bandit}-{number}", unit=f"u{number % 3}", context="[0.1]")]
        store.write_decisions(bandit, rows)
        rewards = [RewardRow(rows[0].id, key, 0.1 * number, None, "key") for key in ("r", "s")]
        store.write_rewards(bandit, rewards, WAIT)
    reward(store, "unknown")
    store.pin_units(2, [UnitRow("u", "p", 1, "a", 0.5)]).result()
    sql = "insert into learner values (1, 0, :state, '')"
    store.execute([(sql, {"state": b"\0\xff"})])
    return contents(store)


def contents(store):
    return {
        table: sorted((row for row in rows if row[0] != PATH_KEY), key=repr)
        for table, columns in TABLES.items()
        for rows in [store.select(f"select {columns} from {table}")]
    }


def test_deleted_decisions_take_their_rewards_with_them_and_the_counts_agree(store):
    filled(store)
    assert store.delete_decisions(1, "unit = :unit", unit="u0") == 14
    assert store.select("select count(*) from decision where bandit = 1") == [(26,)]
    assert store.select("select count(*) from reward where bandit = 1") == [(52,)]
    assert list(store.damage()) == []
    store.execute([("delete from decision where n in (select max(n) from decision)", {})])
    assert len(list(store.damage())) == 3


def test_a_store_is_copied_to_any_place_and_can_go_on_there(place, store, clock, tmp_path):
    before, file = filled(store), tmp_path / "copy.db"
    store.close()
    copies = [(place, file)]
    if isinstance(place, str):
        execute(place, "create schema copy")
        copies.append((file, f"{place}?options=-csearch_path%3Dcopy"))
    for source, target in copies:
        assert copy_store(source, target)["decision"] == 80
        with raises_code("invalid-input"):
            copy_store(source, target)
        with open_store(target, read_only=True) as copy:
            assert contents(copy) == before
    with open_store(target, clock=clock) as copy:
        assert list(copy.damage()) == []
        assert [written.new for written in decide(copy, "1-1", "unknown")] == [False, True]
        copy.execute([(DECLARE, {"name": "new"})])
        assert copy.select("select count(*) from reward") == [(161,)]


def test_a_backup_is_whole_private_and_never_replaces_a_file(store, tmp_path):
    before, path = filled(store), tmp_path / "backup.db"
    store.backup(path)
    with raises_code("invalid-input"):
        store.backup(path)
    assert path.stat().st_mode & 0o777 == 0o600
    with open_store(path, read_only=True) as backup:
        assert contents(backup) == before
    execute_sql = "update decision set propensity = 0.25 where n = 1"
    store.execute([(execute_sql, {})])
    with raises_code("store-unavailable"):
        store.backup(tmp_path / "second.db")
    assert {each.name for each in tmp_path.glob("*.db*") if "store.db" not in each.name} <= {
        "backup.db", "backup.db-wal", "backup.db-shm"
    }  # fmt: skip


def test_every_changed_field_of_a_decision_or_reward_is_found(store):
    filled(store)
    for table in ("decision", "reward"):
        for column in TABLES[table].split(", ")[1:]:
            value = (
                '{"y":1}' if column in ("context", "eligible", "probabilities", "parts")
                else "x" if column in ("id", "unit", "action", "assignment", "key", "source")
                else 7777
            )  # fmt: skip
            (n, old), *_ = store.select(f"select n, {column} from {table} order by n desc")
            change = f"update {table} set {column} = :value where n = :n"
            store.execute([(change, {"value": value, "n": n})])
            assert any("was changed" in sentence for sentence in store.damage()), column
            store.execute([(change, {"value": old, "n": n})])
    assert list(store.damage()) == []


# Files of SQLite


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store.db"


def test_files_belong_to_their_owner_alone(path):
    with open_store(path) as store:
        decide(store, "a")
        files = list(path.parent.iterdir())
        assert {each.stat().st_mode & 0o777 for each in files} == {0o600}
        assert {each.name for each in files} == {"store.db", "store.db-wal", "store.db-shm"}


@pytest.mark.parametrize("log", ["", "-wal"])
@pytest.mark.parametrize("how", ["delete", "rename", "replace"])
def test_nothing_is_acknowledged_into_a_file_that_is_gone(path, tmp_path, how, log):
    with open_store(path) as store:
        decide(store, "a")
        file, aside = tmp_path / f"store.db{log}", tmp_path / "aside"
        aside.hardlink_to(file)
        file.unlink()
        if how == "replace":
            file.write_bytes(aside.read_bytes())
        for write in (lambda: decide(store, "b"), store.check_writable):
            with raises_code("store-unavailable"):
                write()
        if how == "rename":
            aside.rename(file)
            store.check_writable()
            assert decide(store, "b")[0].new


def test_one_process_writes_whatever_name_the_file_has(path, tmp_path):
    with open_store(path):
        link, other = tmp_path / "link.db", tmp_path / "other.db"
        link.symlink_to(path)
        other.hardlink_to(path)
        for name in (path, link, other):
            with raises_code("store-unavailable"):
                open_store(name)
    open_store(other).close()


def test_a_file_that_is_no_database_or_was_cut_off_is_refused(path):
    with raises_code("invalid-input"):
        open_store(path, read_only=True)
    with raises_code("invalid-input"):
        open_store(path.parent / "nowhere" / "store.db")
    with open_store(path) as store:
        filled(store)
    whole = path.read_bytes()
    for data in (whole[: len(whole) // 2], whole[:-1], b"no database" * 1000):
        path.write_bytes(data)
        for read_only in (True, False):
            with raises_code("invalid-input"):
                open_store(path, read_only=read_only)
    path.write_bytes(b"")
    with raises_code("invalid-input"):
        open_store(path, read_only=True)


def test_a_flipped_bit_is_found_or_changes_no_decision_and_no_reward(path):
    with open_store(path) as store:
        before = filled(store)
    whole, random = path.read_bytes(), Random(0)
    changed = 0
    for _ in range(400):
        data = bytearray(whole)
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        path.write_bytes(data)
        try:
            with open_store(path, read_only=True) as store:
                if not list(store.damage()):
                    found = contents(store)
                    assert all(found[table] == before[table] for table in ("decision", "reward"))
                    continue
        except Error:
            pass
        changed += 1
    assert changed > 20


def test_an_interrupt_leaves_no_transaction_open(store):
    """A signal comes while the main thread waits for a write, or reads."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    # An interrupt inside a callback of the collector, such as those of Hypothesis, is swallowed.
    gc.disable()
    try:
        for number in range(30):
            timer = Timer(0.0005 * (number % 4), signal.raise_signal, [signal.SIGINT])
            try:
                timer.start()
                while True:
                    store.execute([("update setting set value = value", {})])
                    store.select("select * from decision")
            except KeyboardInterrupt:
                pass
            assert decide(store, f"b{number}")[0].new
    finally:
        gc.enable()
        signal.signal(signal.SIGINT, before)
    assert ids(store) == [f"b{number}" for number in range(30)]


# Processes

WRITE = """
import os, sys, threading
from submax.bandit.store import open_store
from submax.bandit.tables import DecisionRow, RewardRow

place, run = sys.argv[1:]
store = open_store(place)

def work(thread):
    number = 0
    while True:
        number += 1
        identifier = f"{run}-{thread}-{number}"
        store.write_rewards(1, [RewardRow(identifier, "early", number)], 60.0).result()
        store.write_decisions(1, [DecisionRow(identifier, 0, "a", 0.5)]).result()
        os.write(1, f"{identifier}\\n".encode())
        store.write_rewards(1, [RewardRow(identifier, "reward", number)], 60.0).result()
        os.write(1, f"{identifier} rewarded\\n".encode())

for thread in range(4):
    threading.Thread(target=work, args=(thread,)).start()
"""


def writing(place, run, lines):
    """A process that writes, after it has acknowledged so many writes, and these lines."""
    child = subprocess.Popen([sys.executable, "-c", WRITE, place, run], stdout=subprocess.PIPE)
    return child, [child.stdout.readline() for _ in range(lines)]


def test_a_killed_process_loses_and_doubles_nothing_that_it_acknowledged(place):
    told = []
    for run in range(3):
        child, lines = writing(place, str(run), 100)
        child.kill()
        told += [*lines, *child.stdout.read().splitlines(keepends=True)]
        child.wait()
        child.stdout.close()
    decided = {line.decode().split()[0] for line in told if line.endswith(b"\n")}
    rewarded = {line.decode().split()[0] for line in told if line.endswith(b"rewarded\n")}
    with open_store(place) as store:
        sql = """select id, key, value from decision join reward on decision = decision.n"""
        rewards = {(each, key): value for each, key, value in store.select(sql)}
        assert decided <= set(ids(store))
        assert all(rewards[each, "early"] == int(each.split("-")[2]) for each in decided)
        assert all(rewards[each, "reward"] == int(each.split("-")[2]) for each in rewarded)
        assert len(ids(store)) == len(set(ids(store)))
        assert list(store.damage()) == []


@pytest.mark.needs("postgresql")
def test_a_process_that_is_stopped_holds_up_nobody_and_goes_on_later(postgres_address):
    for run in range(3):
        child, _ = writing(postgres_address, str(run), 20)
        child.send_signal(signal.SIGSTOP)
        try:
            with open_store(postgres_address) as store:
                for number in range(20):
                    assert decide(store, f"here-{run}-{number}")[0].new
                    assert decide(store, f"here-{run}-{number}", bandit=2)[0].new
        finally:
            child.send_signal(signal.SIGCONT)
            child.stdout.read(100)
            child.kill()
            child.wait()
            child.stdout.close()
    with open_store(postgres_address) as store:
        assert list(store.damage()) == []


@pytest.mark.needs("postgresql")
def test_a_lock_that_is_held_fails_the_calls_of_its_bandit_alone(postgres_address, monkeypatch):
    monkeypatch.setitem(postgres_module.WRITING, "lock_timeout", "200ms")
    with open_store(postgres_address) as store, psycopg.connect(postgres_address) as other:
        decide(store, "a")
        other.execute("update counts set n = n where bandit = 1")
        held = store.write_decisions(1, [decided("b")])
        assert all(decide(store, f"c{number}", bandit=2)[0].new for number in range(5))
        with raises_code("store-unavailable"):
            held.result(30)
        other.rollback()
        assert decide(store, "b")[0].new


@pytest.mark.needs("postgresql")
def test_a_transaction_that_was_not_sent_to_its_end_is_ended_by_the_server(
    postgres_address, monkeypatch
):
    monkeypatch.setitem(postgres_module.WRITING, "idle_in_transaction_session_timeout", "1s")
    with open_store(postgres_address) as store, open_store(postgres_address) as frozen:
        decide(store, "a")
        with frozen._database._writer() as session:
            session.execute("begin")
            session.execute("update counts set n = n where bandit = 1")
            assert decide(store, "b")[0].new
            with raises_code("store-unavailable"), frozen._database._errors(session):
                session.execute("commit")
        assert decide(frozen, "c")[0].new


@pytest.mark.needs("postgresql")
def test_a_lost_connection_fails_a_call_and_not_the_store(postgres, postgres_address):
    with open_store(postgres_address) as store, open_store(postgres_address) as other:
        decide(store, "a")
        assert store.lead("fit")
        assert store.lead("fit")
        assert not other.lead("fit")
        assert other.lead("other task")
        postgres.stop(signal.SIGINT)
        for call in (lambda: decide(store, "b"), lambda: ids(store), lambda: store.lead("fit")):
            with raises_code("store-unavailable") as caught:
                call()
            assert PASSWORD not in str(caught.value)
        postgres.start()
        assert decide(store, "b")[0].new
        assert other.lead("fit")
        assert not store.lead("fit")
        other.close()
        wait_until(lambda: store.lead("fit"))


@pytest.mark.needs("postgresql")
@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("u:secret@secret@host:x/db", ""),
        ("u:secret/db", ""),
        ("me:secret@127.0.0.1:1/db", "'db' at"),
        ("127.0.0.1:1/db?password=secret", "'db' at"),
    ],
)
def test_a_wrong_address_is_refused_without_its_password(address, told):
    with raises_code("store-unavailable") as caught:
        open_store(f"postgresql://{address}")
    assert told in str(caught.value)
    assert "secret" not in str(caught.value)
