"""The lock of the one process that writes to a SQLite file, whatever name it was opened by."""

import os
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from submax.core.errors import InputError, StoreError
from submax.live.store.locks.file_lock import FileLock, holder_of


class WriterLock:
    """Two locks: on a file beside the store, and on a file that is named after the store's inode.

    The first one keeps out other machines that share the folder, and does not depend on the
    system's folder for temporary files. The second one keeps out processes of the same user that
    open the same file by a hard link, or after it was renamed. The store's own file is not locked:
    SQLite locks it, and would lose its locks whenever this process closed the file.
    """

    def __init__(self, path: Path) -> None:
        """Take both locks, and create the store's file if there is none."""
        # Symbolic links are resolved, so that one store has one lock beside it.
        real = path.resolve()
        if not path.name or not real.parent.is_dir():
            raise InputError(f"there is no folder for a store {str(path)!r}: make it first")
        with ExitStack() as taken:
            self._lock = taken.enter_context(_taken(path, real.with_name(f"{real.name}.lock")))
            if not real.exists():
                real.touch()
            folder = _own_folder()
            if folder is not None:
                found = real.stat()
                file = folder / f"{found.st_dev:x}-{found.st_ino:x}.lock"
                by_inode = taken.enter_context(_taken(path, file, str(real)))
                _check_other_name(real, by_inode.note_before)
            self._taken = taken.pop_all()

    @property
    def held(self) -> bool:
        """Whether the locks were not released yet."""
        return self._lock.held

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._taken.close()


def _taken(path: Path, file: Path, note: str = "") -> FileLock:
    try:
        return FileLock(file, note, temporary=bool(note))
    except BlockingIOError as error:
        raise StoreError(
            f"{path} is open for writing in {holder_of(file)}: close it there, give a "
            "command the address of its server instead, or share a PostgreSQL store among processes"
        ) from error
    except OSError as error:
        raise InputError(
            f"cannot make a file beside {str(path)!r} ({error.strerror}): give a folder that can "
            "be written"
        ) from error


def _own_folder() -> Path | None:
    """A folder for temporary files that only this user can write to; None if it cannot be had."""
    # On Windows every file has the owner 0, and every user has a folder for temporary files.
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"submax-locks-{user}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        # A folder of somebody else could hold links to files that must not be written.
        if not folder.is_symlink() and folder.stat().st_uid == user:
            return folder
    return None


def _check_other_name(real: Path, before: str) -> None:
    """Refuse a store that was killed under another name: SQLite names its log after the file."""
    other, log = Path(before), Path(f"{before}-wal")
    if not before or other == real or not other.exists() or not log.exists():
        return
    if other.samefile(real) and log.stat().st_size > 0:
        raise StoreError(
            f"{real} was last written as {other}, and the end of its data is in {log}: open it as "
            f"{other}, and use one name only"
        )
