"""Commands on stores: export, backup, copy, doctor, keys, and logs that are stores."""

import sqlite3
from contextlib import closing

import pyarrow.parquet as pq
import pytest

import submax
from submax.bandit.sqlite import PAGE_BYTES
from submax.bandit.store import open_store
from submax.testing import ManualClock

LOG = {"action": ["A", "B"] * 20, "reward": [1, 0] * 20}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A store with a bandit that has decisions, rewards and a version."""
    path, clock = tmp_path_factory.mktemp("made") / "page.db", ManualClock()
    with submax.open(
        path, actions=["A", "B"], reward_wait=60, background=False, name="page", clock=clock
    ) as bandit:
        for number in range(20):
            bandit.reward(bandit.decide(id=f"d{number}").id, float(number % 2))
        clock.now += 61
        bandit.decide(id="last")
        assert bandit.refit()
        copy = path.with_name("copy.db")
        bandit.store.backup(copy)
    return copy.read_bytes()


@pytest.fixture
def file(made, tmp_path, monkeypatch):
    path = tmp_path / "page.db"
    path.write_bytes(made)
    monkeypatch.setenv("SUBMAX_STORE", str(path))
    return path


def files(folder):
    ignored = ("-wal", "-shm", ".lock")
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(ignored))


def test_export_writes_decisions_with_their_rewards(file, tmp_path, done, refused):
    out = tmp_path / "out.parquet"
    done("export", "--out", out)
    rows = pq.read_table(out).to_pylist()
    assert [row["id"] for row in rows] == [*(f"d{number}" for number in range(20)), "last"]
    assert [row["reward"] for row in rows[:20]] == [0.0, 1.0] * 10
    assert "'none'" in refused("export", "--out", tmp_path / "none" / "out.parquet").replace(
        str(tmp_path / "none"), "none"
    )
    open_store(tmp_path / "empty.db").close()
    refused("export", "--store", tmp_path / "empty.db")


def test_a_store_is_a_log(file, tmp_path, done, refused):
    done("export", "--out", tmp_path / "out.parquet")
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
    monkeypatch.setenv("SUBMAX_STORE", "two.db")
    for name in ("one", "two"):
        submax.open("two.db", name=name, actions=["A"], background=False).close()
    assert "one, two" in refused("export")
    assert "'twoo'" in refused("export", "twoo")
    assert list(tmp_path.glob("*.parquet")) == []
    done("export", "two")
    assert [path.name for path in tmp_path.glob("*.parquet")] == ["two.parquet"]


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


def changed(file, sql):
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute(sql).rowcount > 0
        connection.commit()


def test_doctor_finds_a_damaged_model_and_a_damaged_reward(file, done, problem):
    said = done("doctor", file)
    assert "DAMAGE" not in said
    assert "page: 21 decisions, 20 rewards, 0 late" in said
    changed(file, "update version set model = zeroblob(length(model))")
    assert "version 1" in problem(file)
    changed(file, "update reward set value = 0.5 where value = 1")
    assert "reward" in problem(file)
    changed(file, "delete from decision where id = 'd3'")
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


@pytest.mark.parametrize("command", ["backup", "copy"])
def test_a_copy_can_be_opened_in_place_of_the_store(file, tmp_path, done, refused, command):
    copy = tmp_path / "copy.db"
    done(command, file, copy)
    refused(command, file, copy)
    done("doctor", copy)
    with submax.open(copy, name="page", background=False) as bandit:
        assert bandit.decide(id="last").repeated
        assert bandit.version == 1


@pytest.mark.parametrize("command", ["export --store STORE", "backup STORE COPY", "doctor STORE"])
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


def test_keys_are_added_listed_and_revoked(tmp_path, done, refused, invoke, monkeypatch):
    monkeypatch.setenv("SUBMAX_STORE", str(tmp_path / "page.db"))
    added = invoke("keys", "add", "--scope", "decide", "--scope", "read", "--bandit", "page")
    _, number, secret = added.stdout.strip().split(".")
    assert number in added.stderr
    assert "--scope admin" not in invoke("keys", "add", "--scope", "admin").stderr
    lines = sorted(done("keys", "list").splitlines(), key=lambda line: "admin" in line)
    assert lines[0].startswith(f"{number}  decide, read  page")
    assert "  admin  " in lines[1]
    assert secret not in "".join(lines)
    done("keys", "revoke", number)
    assert done("keys", "list").splitlines() == lines[1:]
    assert "(not-found)" in refused("keys", "revoke", number)


def test_a_wrong_key_is_not_made_and_no_file_either(tmp_path, refused):
    for options in ("--scope root", "--scope read --rate nan", "--scope read --expires soon"):
        refused("keys", "add", *options.split(), "--store", tmp_path / "new.db")
    assert files(tmp_path) == []
