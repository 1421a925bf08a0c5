"""Commands on stores: export, doctor, backup, keys, and servers of learned policies."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event
from unittest import mock

import httpx
import pyarrow.parquet as pq
import pytest
from waiting import wait_until

from submax.client import Client
from submax.evaluation.learning import learn
from submax.evaluation.log import Log
from submax.live.bandits.open import open_bandit
from submax.live.log.bandits import model_name
from submax.live.log.rows import training_rows
from submax.live.store.sqlite_store import SQLiteStore
from submax.testing import ManualClock

PAGE_BYTES = 4096
LOG = {"action": ["A", "B"] * 20, "reward": [1, 0] * 20}
OWN = """
from dataclasses import dataclass
from pathlib import Path
from submax.policies.epsilon_greedy import Random

Path(__file__).with_name("was-run").touch()

@dataclass(frozen=True)
class Own(Random):
    pass
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with a bandit that has decisions, rewards, a version and a snapshot."""
    path, clock = tmp_path_factory.mktemp("made") / "page.db", ManualClock()
    with open_bandit(
        path, actions=["A", "B"], reward_wait=60, background=False, name="page", clock=clock
    ) as bandit:
        for number in range(20):
            bandit.reward(bandit.decide(id=f"d{number}").id, float(number % 2))
        clock.now += 61
        bandit.decide(id="last")
        assert bandit.refit()
    return path.read_bytes()


@pytest.fixture
def file(made, tmp_path):
    path = tmp_path / "page.db"
    path.write_bytes(made)
    return path


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "__pycache__")


def test_export_writes_decisions_with_their_rewards(file, tmp_path, done, refused):
    out, rewards = tmp_path / "out.parquet", tmp_path / "rewards.parquet"
    done("export", file, "--out", out, "--rewards", rewards)
    rows = pq.read_table(out).to_pylist()
    assert [row["id"] for row in rows] == [*(f"d{number}" for number in range(20)), "last"]
    assert [row["reward"] for row in rows[:20]] == [0.0, 1.0] * 10
    assert [row["value"] for row in pq.read_table(rewards).to_pylist()] == [0.0, 1.0] * 10
    refused("export", file, "--out", tmp_path / "none" / "out.parquet", status=1)
    SQLiteStore(tmp_path / "empty.db").close()
    refused("export", tmp_path / "empty.db")


def test_a_store_is_a_log(file, tmp_path, done, refused):
    done("export", file, "--out", tmp_path / "out.parquet")
    said = [
        done("evaluate", log, "--policy", "always=A", "--estimator", "ips", "--out", tmp_path / "e")
        for log in (file, tmp_path / "out.parquet")
    ]
    assert said[0] == said[1]
    options = ("--policy", "random", "--bandit", "none")
    assert "'none'" in refused("learn", file, *options)
    assert "(unused-option)" in refused("learn", tmp_path / "out.parquet", *options)


def test_export_needs_to_know_which_of_several_bandits(tmp_path, monkeypatch, done, refused):
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        open_bandit("two.db", name=name, actions=["A"], background=False).close()
    assert "--bandit: one, two" in refused("export", "two.db")
    assert "'two'" in refused("export", "two.db", "--bandit", "twoo")
    assert list(tmp_path.glob("*.parquet")) == []
    done("export", "two.db", "--bandit", "two")
    assert [path.name for path in tmp_path.glob("*.parquet")] == ["two.parquet"]


def test_a_bandit_with_a_burn_in_is_read_without_writing(tmp_path, done):
    path, clock = tmp_path / "page.db", ManualClock()
    rails = {"burn_in": 5}
    options = {"actions": ["A"], "reward_wait": 0.01, "guard_rails": rails, "clock": clock}
    with open_bandit(path, background=False, **options) as bandit:
        bandit.decide()
    done("export", path, "--out", tmp_path / "out.parquet")
    done("doctor", path)


@pytest.fixture
def problem(invoke):
    """All damage that doctor finds."""

    def problem(file) -> str:
        result = invoke("doctor", file)
        assert result.exit_code == 1, result.output
        found = [line for line in result.stdout.splitlines() if line.startswith("DAMAGE")]
        assert found, result.stdout
        return "\n".join(found)

    return problem


def damage(file, name):
    """Change one byte of a piece."""
    store = SQLiteStore(file)
    data = bytearray(store.get_blob(name))
    data[len(data) // 2] ^= 1
    store.put_blob(name, bytes(data))
    store.close()


def test_doctor_finds_a_damaged_model_and_a_damaged_snapshot(file, done, problem):
    said = done("doctor", file)
    assert "DAMAGE" not in said
    assert "page: 21 decisions, 20 rewards, 0 late" in said
    with open_bandit(file, name="page", background=False) as bandit:
        (fitted,) = bandit.versions()
    damage(file, model_name("page", fitted.model))
    found = problem(file)
    assert "version 1" in found
    assert "snapshot" not in found
    damage(file, "page/snapshot")
    assert "snapshot" in problem(file)


def test_doctor_finds_damaged_rows_and_reads_on_after_the_snapshot(tmp_path, done, problem):
    path = tmp_path / "long.db"
    with mock.patch.object(training_rows, "SEGMENT", 4):
        with open_bandit(
            path, name="page", actions=["A", "B"], reward_wait=0, background=False
        ) as bandit:
            for number in range(10):
                bandit.reward(bandit.decide(id=f"{number}").id, 1.0)
            bandit.refit()
            bandit.snapshot()
        store = SQLiteStore(path)
        snapshot = store.get_blob("page/snapshot")
        store.close()
        with open_bandit(path, name="page", background=False) as bandit:
            for number in range(10, 20):
                bandit.reward(bandit.decide(id=f"{number}").id, 1.0)
        store = SQLiteStore(path)
        store.put_blob("page/snapshot", snapshot)
        store.close()
        assert "DAMAGE" not in done("doctor", path)
        damage(path, "page/rows/1")
        assert "segment 1" in problem(path)


def test_doctor_finds_a_damaged_event(file, problem, change_events):
    assert change_events(file, lambda event: {"body": b"\xff\x00"}, kind="reward") > 0
    problem(file)


def test_doctor_finds_damage_in_every_page_and_a_missing_end(file, tmp_path, problem, invoke):
    whole = file.read_bytes()
    for page in range(1, len(whole) // PAGE_BYTES):
        begin = page * PAGE_BYTES
        copy = tmp_path / f"damaged-{page}.db"
        copy.write_bytes(whole[:begin] + b"\xff" * 64 + whole[begin + 64 :])
        problem(copy)
    copy = tmp_path / "cut.db"
    copy.write_bytes(whole[: len(whole) // 2 // PAGE_BYTES * PAGE_BYTES])
    assert invoke("doctor", copy).exit_code == 1


def test_a_backup_can_be_opened_in_place_of_the_store(file, tmp_path, done):
    copy = tmp_path / "copy.db"
    done("backup", file, copy)
    done("doctor", copy)
    with open_bandit(copy, name="page", background=False) as bandit:
        assert bandit.decide(id="last").repeated
        assert bandit.version == 1


def test_a_backup_is_not_written_over_something(file, tmp_path, refused):
    before = file.read_bytes()
    assert str(file) in refused("backup", file, file)
    assert file.read_bytes() == before
    assert str(tmp_path / "none") in refused("backup", file, tmp_path / "none" / "copy.db")


def test_backups_and_exports_of_a_store_while_a_server_writes(file, tmp_path, serve, done):
    address = serve(file)
    stopping, acknowledged = Event(), []

    def load():
        with Client(address, "page", attempts=50) as client:
            while not stopping.is_set():
                acknowledged.append(client.decide().id)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(load)
        try:
            for number in range(2):
                enough = 50 * (number + 1)
                wait_until(lambda enough=enough: len(acknowledged) >= enough)
                known = set(acknowledged)
                copy, out = tmp_path / f"copy-{number}.db", tmp_path / f"{number}.parquet"
                done("backup", file, copy)
                done("doctor", copy)
                done("doctor", file)
                done("export", file, "--out", out)
                done("export", copy, "--out", tmp_path / "copy.parquet")
                for table in (out, tmp_path / "copy.parquet"):
                    assert known <= set(pq.read_table(table)["id"].to_pylist())
        finally:
            stopping.set()
            running.result(60)


def test_keys_are_added_listed_and_revoked(tmp_path, done, refused, invoke):
    path = tmp_path / "page.db"
    added = invoke("keys", "add", path, "--scope", "decide", "--scope", "read", "--bandit", "page")
    _, number, secret = added.stdout.strip().split(".")
    assert number in added.stderr
    # Until then no key could declare a bandit.
    assert "--scope admin" in added.stderr
    assert "--scope admin" not in invoke("keys", "add", path, "--scope", "admin").stderr
    first, second = done("keys", "list", path).splitlines()
    assert first.startswith(f"{number}  decide, read  page")
    assert "  admin  " in second
    assert secret not in first
    done("keys", "revoke", path, number)
    assert done("keys", "list", path).splitlines() == [second]
    assert "(not-found)" in refused("keys", "revoke", path, number)


def test_a_key_made_by_the_command_opens_the_server(file, serve, done, refused):
    text = done("keys", "add", file, "--scope", "read").strip()
    address = serve(file)
    assert httpx.get(f"{address}/metrics").status_code == 401
    headers = {"Authorization": f"Bearer {text}"}
    assert httpx.get(f"{address}/metrics", headers=headers).status_code == 200
    refused("keys", "add", file, "--scope", "read", status=1)
    assert len(done("keys", "list", file).splitlines()) == 1


def test_a_wrong_key_is_not_made_and_no_file_either(tmp_path, refused):
    for options in ("--scope root", "--scope read --rate nan"):
        refused("keys", "add", tmp_path / "new.db", *options.split())
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    "command",
    ["export STORE", "backup STORE COPY", "doctor STORE", "keys list STORE", "keys revoke STORE 1"],
)
def test_what_is_no_store_is_refused_and_not_touched(tmp_path, command, refused, invoke):
    none, text, others, folder = (
        tmp_path / name for name in ("none.db", "text.db", "others.db", "folder.db")
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
    assert "(store-unavailable)" in refused(*words(folder), status=1)
    assert [text.read_bytes(), others.read_bytes()] == before
    assert files(tmp_path) == ["folder.db", "others.db", "text.db"]


def test_a_store_of_a_newer_version_is_refused_with_its_version(file, refused):
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE submax_schema SET version = 99")
        connection.commit()
    assert "99" in refused("doctor", file)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(policy="rcp-submax", **options):
    learn(Log.read(LOG), policy, **options).write("policy.safetensors")


SERVE = ("serve", "page.db", "--port", "0", "--learned", "policy.safetensors")


def test_a_server_starts_from_a_learned_policy(folder, serve):
    written()
    address = serve(folder / "page.db", "--learned", folder / "policy.safetensors")
    with Client(address, "page") as client:
        decision = client.decide()
    assert decision.version == 1
    assert decision.action in ["A", "B"]


def test_a_policy_that_cannot_be_served_makes_no_store(folder, refused):
    (folder / "policy.safetensors").write_bytes(b"nothing")
    assert "'policy.safetensors'" in refused(*SERVE)
    written(keep_rows=0)
    assert "--keep-rows" in refused(*SERVE)
    written()
    assert "0.0.0.0" in refused(*SERVE, "--host", "0.0.0.0")
    assert files(folder) == ["policy.safetensors"]


def test_an_address_that_cannot_be_listened_on_starts_no_bandit(folder, done, refused):
    written()
    done("keys", "add", "page.db", "--scope", "admin")
    store = SQLiteStore(folder / "page.db")
    before = store.streams()
    store.close()
    for host in ("256.256.256.256", "a" * 100):
        assert host in refused(*SERVE, "--host", host)
    store = SQLiteStore(folder / "page.db")
    assert store.streams() == before
    store.close()


def test_a_policy_of_a_file_is_served_only_with_trust(folder, refused, serve):
    (folder / "own.py").write_text(OWN)
    written({"kind": f"{folder / 'own.py'}:Own"})
    (folder / "was-run").unlink()
    assert "'policy.safetensors'" in refused(*SERVE)
    assert not (folder / "was-run").exists()
    assert files(folder) == ["own.py", "policy.safetensors"]
    address = serve(folder / "page.db", "--learned", folder / "policy.safetensors", "--trust")
    assert httpx.get(f"{address}/healthz").status_code == 200
    assert (folder / "was-run").exists()


def test_doctor_says_how_many_rows_a_bandit_was_started_with_and_finds_damage(
    folder, done, problem
):
    written("rcp-optimized")
    open_bandit("page.db", learned="policy.safetensors", background=False).close()
    assert "40 rows" in done("doctor", "page.db")
    store = SQLiteStore(folder / "page.db")
    store.delete_blobs("page/history/")
    store.close()
    assert "segment 0" in problem("page.db")
