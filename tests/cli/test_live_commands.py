import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event
from unittest import mock

import httpx
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from submax.cli import main
from submax.client import Client
from submax.live.bandits.open import open_bandit
from submax.live.log.bandits import model_name
from submax.live.log.rows import training_rows
from submax.live.store.sqlite_store import SQLiteStore
from submax.testing import ManualClock

PAGE_BYTES = 4096


def invoke(*arguments: object) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def done(*arguments: object) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(status: int, *arguments: object) -> str:
    """One sentence."""
    result = invoke(*arguments)
    assert result.exit_code == status, result.output
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.fixture
def file(tmp_path):
    """A store with a bandit that has decisions, rewards, a version and a snapshot."""
    path, clock = tmp_path / "page.db", ManualClock()
    with open_bandit(
        path, actions=["A", "B"], reward_wait=60, background=False, name="page", clock=clock
    ) as bandit:
        for number in range(20):
            bandit.reward(bandit.decide(id=f"d{number}").id, float(number % 2))
        clock.now += 61
        bandit.decide(id="last")
        assert bandit.refit()
    return path


def two_bandits(tmp_path):
    path = tmp_path / "two.db"
    for name in ("one", "two"):
        open_bandit(path, name=name, actions=["A"], background=False).close()
    return path


def test_export_writes_decisions_with_their_rewards(file, tmp_path):
    out, rewards = tmp_path / "out.parquet", tmp_path / "rewards.parquet"
    said = done("export", file, "--out", out, "--rewards", rewards)
    assert said == f"21 decisions in {out}\n20 rewards in {rewards}\n"
    rows = pq.read_table(out).to_pylist()
    assert [row["id"] for row in rows] == [*(f"d{number}" for number in range(20)), "last"]
    assert [row["reward"] for row in rows[:20]] == [0.0, 1.0] * 10
    assert [row["value"] for row in pq.read_table(rewards).to_pylist()] == [0.0, 1.0] * 10


def test_export_names_its_file_by_the_bandit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done("export", two_bandits(tmp_path), "--bandit", "two")
    assert (tmp_path / "two.parquet").exists()


def test_export_needs_to_know_which_of_several_bandits(tmp_path):
    path = two_bandits(tmp_path)
    assert "--bandit: one, two" in refused(2, "export", path)
    assert "did you mean 'two'?" in refused(2, "export", path, "--bandit", "twoo")
    assert list(tmp_path.glob("*.parquet")) == []


def test_export_to_a_place_that_cannot_be_written(file, tmp_path):
    refused(1, "export", file, "--out", tmp_path / "none" / "out.parquet")


def test_export_of_a_store_without_bandits(tmp_path):
    SQLiteStore(tmp_path / "empty.db").close()
    assert "has no bandits" in refused(2, "export", tmp_path / "empty.db")


def test_a_bandit_with_a_burn_in_is_read_without_writing(tmp_path):
    path = tmp_path / "page.db"
    rails = {"burn_in": 5}
    with open_bandit(
        path, actions=["A"], reward_wait=0.01, guard_rails=rails, background=False
    ) as bandit:
        bandit.decide()
    time.sleep(0.02)
    done("export", path, "--out", tmp_path / "out.parquet")
    done("doctor", path)


def test_doctor_says_that_a_store_is_well(file):
    said = done("doctor", file)
    assert "DAMAGE" not in said
    assert "the store is whole: all events and blobs have their checksums" in said
    assert "page: 21 decisions, 20 rewards, 0 late" in said
    assert "1 models are whole, and version 1 decides" in said
    assert "the snapshot says what the log says" in said


def problem(file) -> str:
    """All damage that doctor finds."""
    result = invoke("doctor", file)
    assert result.exit_code == 1, result.output
    return "\n".join(line for line in result.stdout.splitlines() if line.startswith("DAMAGE"))


def damage(file, name):
    """Change one byte of a piece."""
    store = SQLiteStore(file)
    data = bytearray(store.get_blob(name))
    data[len(data) // 2] ^= 1
    store.put_blob(name, bytes(data))
    store.close()


def test_doctor_finds_a_damaged_model(file):
    with open_bandit(file, name="page", background=False) as bandit:
        (fitted,) = bandit.versions()
    damage(file, model_name("page", fitted.model))
    assert "the model of version 1 is damaged" in problem(file)


def test_doctor_finds_a_damaged_snapshot(file):
    damage(file, "page/snapshot")
    assert "the snapshot is damaged" in problem(file)


def test_doctor_finds_damaged_rows_and_reads_on_after_the_snapshot(tmp_path):
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
        assert "the snapshot says what the log says" in done("doctor", path)
        damage(path, "page/rows/1")
        assert "segment 1 of the rows of 'page' is missing or damaged" in problem(path)


def test_doctor_finds_a_damaged_event(file, change_events):
    assert change_events(file, lambda event: {"body": b"\xff\x00"}, kind="reward") > 0
    assert "is damaged or from a newer submax" in problem(file)


def test_doctor_finds_damage_in_every_page_of_the_database(file, tmp_path):
    whole = file.read_bytes()
    for page in range(1, len(whole) // PAGE_BYTES):
        begin = page * PAGE_BYTES
        copy = tmp_path / f"damaged-{page}.db"
        copy.write_bytes(whole[:begin] + b"\xff" * 64 + whole[begin + 64 :])
        assert "damaged" in problem(copy)


def test_doctor_finds_that_the_end_of_the_database_is_missing(file, tmp_path):
    whole = file.read_bytes()
    copy = tmp_path / "cut.db"
    copy.write_bytes(whole[: len(whole) // 2 // PAGE_BYTES * PAGE_BYTES])
    result = invoke("doctor", copy)
    assert result.exit_code == 1
    assert "damaged" in result.output


def test_a_backup_can_be_opened_in_place_of_the_store(file, tmp_path):
    copy = tmp_path / "copy.db"
    assert done("backup", file, copy) == f"Copied {file} to {copy}\n"
    done("doctor", copy)
    with open_bandit(copy, name="page", background=False) as bandit:
        assert bandit.decide(id="last").repeated
        assert bandit.version == 1


def test_a_backup_is_not_written_over_something(file, tmp_path):
    before = file.read_bytes()
    assert "exists and is not replaced" in refused(2, "backup", file, file)
    assert file.read_bytes() == before
    assert "no folder" in refused(2, "backup", file, tmp_path / "none" / "copy.db")


def test_backups_and_exports_of_a_store_while_a_server_writes(file, tmp_path, start):
    process = start("serve", file, "--port", 0)
    address = process.stderr.readline().rpartition(" ")[2].strip()
    stopping, acknowledged = Event(), []

    def load():
        with Client(address, "page", attempts=50) as client:
            while not stopping.is_set():
                acknowledged.append(client.decide().id)

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(load)
        try:
            for number in range(2):
                while len(acknowledged) < 50 * (number + 1):
                    time.sleep(0.01)
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
            process.terminate()
            process.communicate(timeout=20)
    assert process.returncode == 0


def test_keys_are_added_listed_and_revoked(tmp_path):
    path = tmp_path / "page.db"
    added = invoke("keys", "add", path, "--scope", "decide", "--scope", "read", "--bandit", "page")
    text = added.stdout.strip()
    _, number, secret = text.split(".")
    assert f"Its id is {number}" in added.stderr
    done("keys", "add", path, "--scope", "admin", "--rate", "5")
    first, second = done("keys", "list", path).splitlines()
    assert first == f"{number}  decide, read  page, never used"
    assert second.endswith("admin  all bandits, 5 requests a second, never used")
    assert secret not in first
    assert "is revoked" in done("keys", "revoke", path, number)
    assert done("keys", "list", path).splitlines() == [second]
    assert "no key with the id" in refused(2, "keys", "revoke", path, number)


def test_a_key_made_by_the_command_opens_the_server(file, start):
    text = done("keys", "add", file, "--scope", "read").strip()
    process = start("serve", file, "--port", 0)
    try:
        address = process.stderr.readline().rpartition(" ")[2].strip()
        assert httpx.get(f"{address}/metrics").status_code == 401
        headers = {"Authorization": f"Bearer {text}"}
        assert httpx.get(f"{address}/metrics", headers=headers).status_code == 200
        assert "is open for writing in" in refused(1, "keys", "add", file, "--scope", "read")
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--scope", "root"], "'root'"),
        (["--scope", "read", "--bandit", "No"], "'No'"),
        (["--scope", "read", "--rate", "0"], "above 0"),
        (["--scope", "read", "--rate", "nan"], "nan"),
    ],
)
def test_a_wrong_key_is_not_made_and_no_file_either(tmp_path, options, words):
    assert words in refused(2, "keys", "add", tmp_path / "new.db", *options)
    assert list(tmp_path.iterdir()) == []


COMMANDS = {
    "export": lambda path: ["export", path],
    "backup": lambda path: ["backup", path, path.with_name("copy.db")],
    "doctor": lambda path: ["doctor", path],
    "keys list": lambda path: ["keys", "list", path],
    "keys revoke": lambda path: ["keys", "revoke", path, "none"],
}


@pytest.mark.parametrize("command", list(COMMANDS))
def test_a_file_that_is_not_there_is_said_so_and_not_made(tmp_path, command):
    assert "there is no store" in refused(2, *COMMANDS[command](tmp_path / "none.db"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", list(COMMANDS))
def test_a_file_that_is_no_store_is_said_so_and_not_touched(tmp_path, command):
    path = tmp_path / "text.db"
    path.write_text("not a database at all " * 500)
    before = path.read_bytes()
    result = invoke(*COMMANDS[command](path))
    # To doctor this is damage.
    assert result.exit_code == (1 if command == "doctor" else 2)
    assert "is not a store of submax, or is damaged" in result.output
    assert result.output.count("\n") == 1
    assert path.read_bytes() == before


@pytest.mark.parametrize("command", list(COMMANDS))
def test_a_database_of_others_is_said_so_and_not_touched(tmp_path, command):
    path = tmp_path / "others.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE thesis (text)")
    before = path.read_bytes()
    assert "not a store of submax" in refused(2, *COMMANDS[command](path))
    assert path.read_bytes() == before


@pytest.mark.parametrize("command", list(COMMANDS))
def test_a_folder_is_no_store(tmp_path, command):
    folder = tmp_path / "folder"
    folder.mkdir()
    assert "cannot be used" in refused(1, *COMMANDS[command](folder))


def test_a_store_of_a_newer_version_is_refused_with_both_versions(file):
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE submax_schema SET version = 99")
        connection.commit()
    assert "99" in refused(2, "doctor", file)
