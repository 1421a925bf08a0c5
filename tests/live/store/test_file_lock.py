import subprocess
import sys

import pytest

from submax.live.store.locks.file_lock import FileLock, holder_of

HOLD = """
import sys
from pathlib import Path
from submax.live.store.locks.file_lock import FileLock
lock = FileLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_is_held_once_and_can_be_taken_after_its_release(tmp_path):
    path = tmp_path / "store.lock"
    with FileLock(path) as lock:
        assert lock.held
        with pytest.raises(BlockingIOError):
            FileLock(path)
        assert holder_of(path).startswith("this process, process ")
    assert not lock.held
    FileLock(path).release()


def test_a_lock_ends_with_its_process_and_names_it(tmp_path):
    path = tmp_path / "store.lock"
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(BlockingIOError):
            FileLock(path)
        assert holder_of(path) == f"process {other.pid}"
        other.kill()
    FileLock(path).release()
