"""What only a bandit with a store does."""

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from msgspec.structs import astuple
from refusals import raises_code

from submax.bandit import reading
from submax.bandit.declaring import bandit_names, delete_bandit
from submax.bandit.doctor import examined
from submax.bandit.durable import open_bandit
from submax.bandit.export import export
from submax.bandit.reading import BanditReader, read_progress
from submax.bandit.store import open_store
from submax.bandit.tables import COLUMNS
from submax.core.errors import ConflictError, InputError, StoreError
from submax.evaluation.log import Log

WAIT, ARMS = 10.0, ["A", "B", "C"]


@pytest.fixture
def store(place):
    """Where bandits are opened."""
    return place


def fed(bandit, clock, rows=30, first=0):
    for number in range(first, first + rows):
        bandit.decide(id=f"d{number}", unit=f"u{number % 7}")
        if number % 3:
            bandit.reward(f"d{number}", float(number % 2))
        clock.now += 0.5
    clock.now += WAIT
    return bandit


def in_threads(call, arguments, threads=8):
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(call, arguments))


def test_rewards_are_stored_once_whatever_threads_do(opened):
    bandit = opened()
    ids = [one.id for one in bandit.decide_many([{}] * 40)]
    receipts = in_threads(lambda place: bandit.reward(ids[place % 40], 1.0), range(320))
    assert sum(not one.repeated for one in receipts) == 40
    assert bandit.counts()["rewards"] == 40
    made = in_threads(lambda place: bandit.decide(id=f"same{place % 20}"), range(160))
    assert sum(not one.repeated for one in made) == 20
    for name in {one.id for one in made}:
        assert len({one.action for one in made if one.id == name}) == 1


def test_simultaneous_first_decisions_of_a_unit_have_one_action(opened, place):
    """Single and batched requests are mixed; on PostgreSQL another store decides beside it."""
    declared = {"context": {"age": float}, "policy": {"kind": "linucb"}}
    bandits = [opened(**declared)]
    if isinstance(place, str):
        bandits.append(opened(**declared))
    barrier = threading.Barrier(4)

    def decide(place):
        bandit, found = bandits[place % len(bandits)], {}
        barrier.wait()
        for first in range(0, 400, 20):
            requests = [
                {"context": {"age": place}, "unit": f"u{unit}"} for unit in range(first, first + 20)
            ]
            if (first // 20 + place) % 2:
                drawn = bandit.decide_many(requests)
            else:
                drawn = [bandit.decide(**request) for request in requests]
            found.update((one.unit, one.action) for one in drawn)
        return found

    first, *others = in_threads(decide, range(4), 4)
    assert len(first) == 400
    assert all(one == first for one in others)


def test_many_writes_are_awaited_at_once(opened):
    bandit = opened()
    started = [bandit.prepare_decisions([{"id": f"d{place}"}]).start() for place in range(50)]
    assert [one.result(30)[0].id for one in started] == [f"d{place}" for place in range(50)]
    rewards = [bandit.prepare_reward(f"d{place}", 1.0, source="key").start() for place in range(50)]
    assert {one.result(30).status for one in rewards} == {"accepted"}
    with pytest.raises(ConflictError):
        bandit.prepare_reward("d1", 0.0).result()
    errors, prepared = bandit.prepare_together([{"id": "e1"}, {"id": "with space"}, {"id": "e2"}])
    assert [one.id for one in prepared.result()] == ["e1", "e2"]
    assert [error and error.code for error in errors] == [None, "invalid-input", None]
    assert {reward.source for reward in bandit.find_decision("d1").rewards} == {"key"}


def test_a_bandit_goes_on_after_a_restart(opened, clock, place):
    declared = {"context": {"age": float}, "policy": {"kind": "linucb"}, "sticky": 1e6}
    bandit = opened(**declared)
    first = bandit.decide({"age": 3}, id="one", unit="u")
    bandit.reward("one", 1.0)
    bandit.add("D", ramp=50)
    before, numbers = bandit.counts(), bandit.arms()
    bandit.close()
    again = open_bandit(place, name="page", background=False, clock=clock)
    with again:
        assert again.counts() == before
        assert [one.decisions for one in again.arms()] == [one.decisions for one in numbers]
        assert again.decide({"age": 9}, id="one").repeated
        assert again.decide({"age": 9}, unit="u").action == first.action
        assert again.reward("one", 1.0).repeated
        assert any("'D'" in one for one in again.notices())
    for call in (bandit.decide, bandit.counts):
        with pytest.raises(StoreError):
            call()


def test_learning_is_announced_from_the_first_minute(opened, clock):
    bandit = opened(reward_wait=3600)
    assert len(bandit.notices()) == 1
    bandit.decide()
    clock.now += 600
    (sentence,) = bandit.notices()
    assert "1 decision" in sentence
    assert "3000 seconds" in sentence
    assert "1 decision wait" in str(bandit)


def test_the_wait_can_be_changed_and_every_decision_matures_once(opened, clock):
    bandit = opened(reward_wait=100)
    for number in range(20):
        bandit.decide(id=f"d{number}")
        clock.now += 10
    bandit.summarize()
    assert bandit.counts()["matured"] == 11
    bandit.set(reward_wait=50)
    assert bandit.counts()["matured"] == 16
    bandit.summarize()
    bandit.set(reward_wait=1000)
    assert bandit.reward("d0", 1.0).status == "late"
    assert bandit.reward("d19", 1.0).status == "accepted"
    statuses = [bandit.find_decision(f"d{number}").status for number in range(20)]
    assert statuses == ["learned"] * 16 + ["pending"] * 4
    clock.now += 100
    assert bandit.counts()["matured"] == 16
    clock.now += 900
    assert bandit.counts()["matured"] == 20
    for wait in (0, -1.0):
        with raises_code("invalid-input", "reward_wait"):
            bandit.set(reward_wait=wait)
    with raises_code("invalid-input"):
        bandit.set(reward_wait=0)


def test_sums_that_another_thread_makes_first_are_not_made_twice(opened, clock, monkeypatch):
    bandit = fed(opened(), clock)

    def after_another(store, number):
        found = read_progress(store, number)
        monkeypatch.undo()
        reading.advance(store, bandit.read.declared)
        return found

    monkeypatch.setattr(reading, "read_progress", after_another)
    bandit.summarize()
    assert bandit.counts()["decisions"] == 30
    assert sum(one.decisions for one in bandit.read.totals().values()) == 30


def test_the_sums_of_pages_do_not_depend_on_when_they_are_made(opened, clock):
    bandit = opened(guard_rails={"holdout": 0.3, "baseline": "A"})
    for number in range(6):
        fed(bandit, clock, first=100 * number)
        clock.now += 1800
        if number in (1, 2, 4):
            bandit.summarize()
    reader, by = bandit.read, ["bucket", "slot", "choice", "part"]

    def sums():
        kinds = ("hour", "version", "status", "delay")
        return {kind: {key: astuple(one) for key, one in reader.sums(kind, by).items()}
                for kind in kinds}  # fmt: skip

    summed, lift = sums(), reader.lift()
    assert read_progress(bandit.store, reader.declared.n) is not None
    bandit.store.execute([("delete from summary", {}), ("delete from progress", {})])
    for kind, rows in sums().items():
        assert rows == {key: pytest.approx(one) for key, one in summed[kind].items()}
    assert reader.lift() == lift
    assert sum(cell.sums.decisions for cell in reader.series(step=7200)) == 180
    assert sum(one.decisions for one in reader.by_version().values()) < 180


def test_segments_cross_two_fields_whatever_their_names(opened, clock):
    country, age = 'a "quoted" name', "back\\slash"
    bandit = opened(context={country: ["de", "fr"], age: float}, policy={"kind": "linucb"})
    for number in range(60):
        place = number % 2
        made = bandit.decide({country: ("de", "fr")[place], age: number}, eligible=["AB"[place]])
        bandit.reward(made.id, 1.0 - place)
    clock.now += WAIT
    assert bandit.refit().rows == 60
    (first, second) = bandit.read.segments(country)
    assert {first.values: first.mean, second.values: second.mean} == {("de",): 1.0, ("fr",): 0.0}
    crossed = bandit.read.segments(country, age)
    assert sum(one.decisions for one in crossed) == 60
    assert len(crossed) == 10
    with raises_code("not-found"):
        bandit.read.segments("city")


def test_a_decision_is_found_with_what_became_of_it(opened, clock):
    bandit = opened()
    bandit.decide(id="one", unit="u", eligible=["A", "B"])
    clock.now += 4
    bandit.reward("one", 1.0)
    clock.now += WAIT
    bandit.decide_many([{"id": f"x{number}"} for number in range(20)])
    bandit.reward("one", 0.0, key="again")
    found = bandit.find_decision("one")
    assert (found.status, found.unit, found.eligible) == ("learned", "u", [["A", "B"]])
    assert [(one.key, one.value, one.seconds, one.late) for one in found.rewards] == [
        ("reward", 1.0, 4.0, False),
        ("again", 0.0, 14.0, True),
    ]
    assert bandit.find_decision("two") is None
    bandit.reward("two", 1.0)
    assert [one.id for one in bandit.read.early_rewards()] == ["two"]
    assert [one.id for one in bandit.newest_decisions(limit=2)] == ["x19", "x18"]
    assert [one.id for one in bandit.newest_decisions("u")] == ["one"]


@pytest.mark.parametrize("anonymous", [False, True])
def test_a_unit_is_erased_and_the_store_is_whole(opened, clock, place, anonymous):
    bandit = opened(sticky=1e6, context={"age": float}, policy={"kind": "linucb"})
    for number in range(12):
        made = bandit.decide({"age": 1}, unit=("somebody", "other")[number % 2])
        bandit.reward(made.id, 1.0)
    assert bandit.erase("somebody", anonymous=anonymous) == 6
    assert bandit.erase("somebody") == 0
    assert bandit.newest_decisions("somebody") == []
    assert len(bandit.newest_decisions()) == (12 if anonymous else 6)
    clock.now += WAIT
    counts = bandit.counts()
    assert (counts["learned"], counts["matured"]) == (12 if anonymous else 6, 12)
    before, arms = bandit.counts() | {"deleted": 0}, bandit.arms()
    bandit.erase("other")
    assert bandit.counts() | {"deleted": 0} == before
    assert [one.rows for one in bandit.arms()] == [one.rows for one in arms]
    assert [one.action for one in bandit.audit(3)] == ["erase a unit"] * (2 + (not anonymous)) + [
        "make a unit anonymous"
    ] * anonymous
    assert "damage" not in {finding.kind for finding in examined(bandit.store)}
    bandit.close()
    with open_store(place, clock=clock) as store:
        rows = [store.select(f"select * from {table}") for table in COLUMNS]
    assert "somebody" not in repr(rows)


def test_old_decisions_are_exported_and_deleted(opened, clock, tmp_path):
    bandit = fed(opened(), clock)
    middle = clock.now
    fed(bandit, clock, first=100)
    before, arms = bandit.counts(), bandit.arms()
    for options in ({}, {"before": middle}, {"before": clock.now + 1}):
        with raises_code("invalid-input", "before"):
            bandit.export(tmp_path / "old.parquet", delete=True, **options)
    bandit.archive()
    with raises_code("archived"):
        bandit.refit()
    with raises_code("invalid-input", "delete"):
        bandit.export(tmp_path / "old.csv", delete=True, before=middle)
    with raises_code("invalid-input"):
        bandit.export(tmp_path / "missing" / "old.parquet")
    assert bandit.export(tmp_path / "old.parquet", delete=True, before=middle) == 30
    assert (tmp_path / "old.parquet").stat().st_mode & 0o777 == 0o600
    assert len(bandit.newest_decisions(limit=100)) == 30
    assert bandit.counts() == before
    assert [one.reward_rate for one in bandit.arms()] == [one.reward_rate for one in arms]
    assert bandit.audit(1)[0].action == "export and delete"
    assert len(Log.read(tmp_path / "old.parquet").reward) == 30
    assert "damage" not in {finding.kind for finding in examined(bandit.store)}


def test_all_decisions_that_were_learned_from_may_be_deleted_and_no_later_ones(
    opened, clock, tmp_path
):
    bandit = fed(opened(), clock)
    clock.now += WAIT
    assert bandit.refit().learned
    learned = clock.now
    bandit.decide()
    clock.now += 1
    with raises_code("invalid-input", "before"):
        bandit.export(tmp_path / "old.parquet", delete=True, before=clock.now + 1)
    assert bandit.export(tmp_path / "old.parquet", delete=True, before=learned) == 30


def test_damage_is_named_and_never_exported(tmp_path, clock):
    file = tmp_path / "page.db"
    with open_bandit(file, actions=ARMS, reward_wait=WAIT, background=False, clock=clock) as bandit:
        fed(bandit, clock)
    for statement in (
        "update decision set action = 'C' where id = 'd3'",
        "update reward set value = 1 - value where n = (select max(n) from reward)",
    ):
        copy = tmp_path / "copy.db"
        copy.write_bytes(file.read_bytes())
        with closing(sqlite3.connect(copy)) as connection, connection:
            connection.execute(statement)
        with (
            open_bandit(copy, name="page", background=False, clock=clock) as bandit,
            raises_code("damaged-store"),
        ):
            bandit.export(tmp_path / "log.parquet")
        assert not (tmp_path / "log.parquet").exists()
        with open_store(copy, read_only=True) as store:
            kinds = [finding.kind for finding in examined(store)]
        assert kinds.count("damage") >= 1
        copy.unlink()


def test_every_change_is_audited_and_seen_by_others(opened, place):
    bandit = opened()
    other = opened() if isinstance(place, str) else opened(bandit.store)
    bandit.set(refit_rows=7)
    bandit.add("D")
    bandit.pause("A")
    bandit.pause()
    other.follow()
    assert other.settings.refit_rows == 7
    assert [one.status for one in other.menu.slots[0].choices] == ["paused", *["active"] * 3]
    assert other.decide().paused
    other.set_status("active", who=("shop", "k1"))
    assert (bandit.audit(1)[0].name, bandit.audit(1)[0].key) == ("shop", "k1")
    with raises_code("not-found"):
        bandit.publish(3)
    with raises_code("conflict"):
        bandit.roll_back()
    assert [one.action for one in bandit.audit()] == [
        "resume", "pause", "change", "change", "set", "declare",
    ]  # fmt: skip
    assert {one.name for one in bandit.audit()} == {"Python", "shop"}


def test_changes_at_the_same_moment_are_all_kept(opened):
    bandit = opened()
    names = ("seed", "refit_rows")
    in_threads(lambda place: bandit.set(**{names[place % 2]: 1 + place}), range(8), 4)
    assert {one.detail.split("=")[0] for one in bandit.audit(8)} == {*names}

    def add(_):
        try:
            bandit.add("D")
        except ConflictError:
            return "refused"
        return "added"

    assert sorted(in_threads(add, range(6), 6)) == ["added", *["refused"] * 5]


def test_a_deleted_bandit_is_gone_and_its_name_is_free(opened, clock):
    bandit = opened()
    other = opened(bandit.store, name="other", actions=["X", "Y"])
    fed(bandit, clock)
    other.decide(id="kept")
    store = bandit.store
    delete_bandit(store, "page")
    bandit.follow()
    assert bandit.deleted
    with raises_code("not-found"):
        bandit.decide()
    assert bandit_names(store) == ["other"]
    assert other.find_decision("kept") is not None
    again = opened(store, actions=["X", "Y"])
    assert again.counts()["decisions"] == 0
    assert BanditReader.of(store, "page").counts()["decisions"] == 0


POLICY = """
from submax.policies.thompson import Thompson
from pathlib import Path
Path(__file__).with_suffix(".ran").touch()
class Mine(Thompson): pass
"""


def test_code_that_a_store_names_is_run_only_with_trust(tmp_path, clock):
    code, file = tmp_path / "mine.py", tmp_path / "page.db"
    code.write_text(POLICY)
    ran = code.with_suffix(".ran")
    declared = {"background": False, "clock": clock, "reward_wait": WAIT}
    open_bandit(file, actions=ARMS, policy=f"{code}:Mine", **declared).close()
    ran.unlink()
    with raises_code("invalid-input"):
        open_bandit(file, background=False)
    with open_store(file, read_only=True, clock=clock) as store:
        reader = BanditReader.of(store, "page")
        assert reader.counts()["decisions"] == 0
        assert reader.arms()
        reader.notices()
    assert not ran.exists()
    with open_bandit(file, background=False, trust=True) as bandit:
        assert bandit.decide().action in ARMS


def test_versions_are_fitted_published_held_and_rolled_back(opened, clock):
    bandit = opened(keep_versions=2)
    assert not bandit.refit()
    with raises_code("conflict"):
        bandit.roll_back()
    for number in range(3):
        fed(bandit, clock, first=100 * number)
        assert bandit.refit().version == number + 1
    assert [one.rows for one in bandit.versions()] == [30, 60, 90]
    assert bandit.decide().version == 3
    for version in (7, -1, "1"):
        with raises_code("not-found"):
            bandit.publish(version)
    assert bandit.roll_back() == 2
    fed(bandit, clock, first=500)
    bandit.refit()
    assert (bandit.version, bandit.held) == (2, True)
    # The one that is held is never deleted.
    assert [one.kept for one in bandit.versions()] == [False, True, True, True]
    assert bandit.publish() == 4
    assert (bandit.version, bandit.held) == (4, False)
    assert bandit.notices() == []
    # Learning goes on where it stopped, also after a restart, and with another wait.
    bandit.set(reward_wait=2 * WAIT)
    assert not bandit.refit()
    bandit.close()
    again = opened()
    assert (again.version, again.counts()["learned"]) == (4, 121)
    fed(again, clock, first=700)
    clock.now += WAIT
    assert again.refit().rows == 30


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_what_has_happened_lately_is_summed_by_the_minute(opened, clock):
    rails = {"holdout": 0.2, "baseline": "A"}
    bandit = opened(guard_rails=rails, context={"device": ["phone", "desk"]}, policy="rcp-adaptive")
    for number in range(5):
        clock.now = 1_000_000.0 + 60.0 * number
        made = bandit.decide_many([{"context": {"device": "desk"}}] * 30)
        bandit.reward_many([{"id": one.id, "value": 1.0} for one in made])
    clock.now += WAIT
    since, cells = bandit.read.recent(60)
    assert since < 1_000_000.0 + 180.0
    newest = [cell for cell in cells if cell.at > since]
    assert sum(cell.sums.decisions for cell in newest) == 60
    assert sum(cell.sums.reward for cell in newest) == 60
    assert {cell.at % 60 for cell in cells} == {0.0}
    held_out = sum(
        cell.sums.decisions for cell in bandit.read.recent()[1] if cell.part == "holdout"
    )
    assert 0 < held_out < 150
    # Segments are what the bandit shows, so held-out decisions are not among them.
    (segment,) = bandit.read.segments("device")
    assert (segment.values, segment.decisions) == (("desk",), 150 - held_out)


def test_an_export_of_a_store_with_a_flipped_bit_is_refused_or_right(tmp_path, clock, seed):
    rng = np.random.default_rng([seed, 1])
    file, copy, path = (tmp_path / name for name in ("page.db", "copy.db", "log.parquet"))
    with open_bandit(file, actions=ARMS, reward_wait=WAIT, background=False, clock=clock) as bandit:
        fed(bandit, clock)
        bandit.export(path)
    right, data = Log.read(path), file.read_bytes()
    refused = 0
    # Behind the settings, which have no checksum.
    for place in rng.integers(6 * 8192, len(data), 25).tolist():
        changed = bytearray(data)
        changed[place] ^= 1 << int(rng.integers(8))
        copy.write_bytes(changed)
        try:
            with open_store(copy, read_only=True) as store:
                export(store, "page", path)
        except (InputError, StoreError):
            refused += 1
            continue
        assert Log.read(path).reward.tolist() == right.reward.tolist()
    assert refused < 25
