"""The folder beside a SQLite file in which the segments of archived events are."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from submax.core.errors import StoreError
from submax.core.serialization import atomic_write


def archive_folder(path: Path) -> Path:
    """The folder with the archive of the store in a file: its name and ``-archive``.

    >>> archive_folder(Path("/data/bandits.db")).name
    'bandits.db-archive'
    """
    path = path.resolve()
    return path.with_name(f"{path.name}-archive")


class SegmentFolder:
    """Files of segments, in one folder for each bandit: ``NAME/SEGMENT.parquet``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, name: str, segment: str, data: bytes) -> None:
        """Write a segment, and replace an earlier one; it is durable on return."""
        path = self._path(name, segment)
        with _store_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as file:
                file.write(data)
            # A file is durable only if the entries of the folders on its path are.
            for folder in (path.parent, self.folder, self.folder.parent):
                _sync(folder)

    def get(self, name: str, segment: str) -> bytes | None:
        """The bytes of a segment; None if there is none."""
        path = self._path(name, segment)
        with _store_errors(path):
            return path.read_bytes() if path.exists() else None

    def delete(self, name: str) -> None:
        """Delete all segments of a bandit."""
        folder = self.folder / name
        with _store_errors(folder):
            if folder.exists():
                shutil.rmtree(folder)

    @property
    def size(self) -> int:
        """The bytes of all files in the folder."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def _path(self, name: str, segment: str) -> Path:
        return self.folder / name / f"{segment}.parquet"


@contextmanager
def _store_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{path} cannot be used ({error.strerror or error}): see that the disk has space and "
            "that the folder can be written, then try again; nothing that was acknowledged is lost"
        ) from error


def _sync(folder: Path) -> None:
    if os.name == "nt":
        # Windows cannot open a folder, and NTFS logs its changes of folders.
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
