"""A lock on a file that ends with the process that holds it, on Unix and on Windows."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

LOCKED_BYTE = 2**30
"""The offset of the byte that is locked on Windows, where a locked byte cannot be read by others:
far behind the name of the holder, which others read."""


class FileLock:
    """An exclusive lock on a file, in which the holder writes its name, and a note if there is one.

    ``note_before`` is the note of the last holder. The operating system releases the lock when the
    file is closed or the process ends, however it ends. The file itself stays, unless the lock is
    ``temporary`` and is released.
    """

    def __init__(self, path: Path, note: str = "", *, temporary: bool = False) -> None:
        """Take the lock; ``BlockingIOError`` if it is held, by a process or in this one."""
        self._path, self._temporary = path, temporary
        self._file = _locked(path)
        while temporary and not _is_at(self._file, path):
            # The last holder has removed the file after it was opened here.
            self._file.close()
            self._file = _locked(path)
        self._file.seek(0)
        self.note_before = self._file.read().partition("\n")[2]
        self._file.truncate(0)
        self._file.write(f"process {os.getpid()}" + (f"\n{note}" if note else ""))
        self._file.flush()

    @property
    def held(self) -> bool:
        """Whether the lock was not released yet."""
        return not self._file.closed

    def release(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._temporary and self.held:
            # Windows does not remove a file that is open; an old file does no harm.
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def holder_of(path: Path) -> str:
    """The name of the process that holds the lock on a file, as far as it can be read."""
    holder = path.read_text(encoding="utf-8").partition("\n")[0].strip() or "another process"
    return f"this process, {holder}" if holder == f"process {os.getpid()}" else holder


def _locked(path: Path) -> IO[str]:
    file = path.open("a+", encoding="utf-8")
    try:
        _lock(file)
    except BaseException:
        file.close()
        raise
    return file


def _is_at(file: IO[str], path: Path) -> bool:
    """Whether an open file is still the one at a path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _lock(file: IO[str]) -> None:
    """Lock an open file; each system has its own call, imported only there."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(LOCKED_BYTE)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(str(error)) from error
        finally:
            file.seek(0)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
