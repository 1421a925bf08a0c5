"""One process writes to a SQLite file, whatever name the file was opened by."""

import os
import signal
import subprocess
import sys
from contextlib import closing

import pytest
from refusals import raises_code

from submax.live.store.event import Entry
from submax.live.store.sqlite_store import SQLiteStore

HOLD = """
import sys
from submax.live.store.event import Entry
from submax.live.store.sqlite_store import SQLiteStore
store = SQLiteStore(sys.argv[1])
store.append("s", [Entry("kind", b"", "acknowledged")]).result()
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path):
    SQLiteStore(tmp_path / "store.db").close()
    return tmp_path / "store.db"


@pytest.fixture
def link(path, tmp_path):
    """Another name of the same file, in another folder."""
    (tmp_path / "elsewhere").mkdir()
    os.link(path, tmp_path / "elsewhere" / "link.db")
    return tmp_path / "elsewhere" / "link.db"


@pytest.fixture
def holder(path):
    """Another process that has the store open."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"open\n"
        yield process
        process.kill()


def test_a_second_process_is_refused_by_any_name_of_the_file(path, link, holder):
    with raises_code("store-unavailable") as refused:
        SQLiteStore(path)
    assert f"process {holder.pid}" in str(refused.value)
    with raises_code("store-unavailable"):
        SQLiteStore(link)
    renamed = path.rename(path.with_name("renamed.db"))
    with raises_code("store-unavailable"):
        SQLiteStore(renamed)


def test_a_second_writer_in_the_same_process_is_refused(path, link, tmp_path):
    with closing(SQLiteStore(path)):
        for name in (path, link):
            with raises_code("store-unavailable"):
                SQLiteStore(name)
        # Another store is not kept out.
        SQLiteStore(tmp_path / "other.db").close()
    SQLiteStore(link).close()


def test_after_a_kill_the_store_opens_by_the_name_that_its_log_has(path, link, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with raises_code("store-unavailable"):
        SQLiteStore(link)
    with closing(SQLiteStore(path)) as store:
        assert store.find("s", "acknowledged") is not None
    with closing(SQLiteStore(link)) as store:
        assert store.find("s", "acknowledged") is not None
        assert store.append("s", [Entry("kind", b"", "new")]).result()[0].new


def test_a_folder_for_temporary_files_of_somebody_else_is_not_used(path, tmp_path, monkeypatch):
    victim = tmp_path / "victim"
    victim.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / f"submax-locks-{os.getuid()}").symlink_to(victim)
    SQLiteStore(path).close()
    assert list(victim.iterdir()) == []


FORK = """
import os, sys
from submax.core.errors import StoreError
from submax.live.store.event import Entry
from submax.live.store.sqlite_store import SQLiteStore
store = SQLiteStore(sys.argv[1])
child = os.fork()
if child == 0:
    try:
        store.append("log", [Entry("kind", b"")])
    except StoreError as error:
        print(error.code, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(store.append("log", [Entry("kind", b"")]).result(10)[0].new)
store.close()
"""


def test_a_forked_process_has_to_open_its_own(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", FORK, str(tmp_path / "forked.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["store-unavailable", "True"]
