"""Exports of bandits as files, written in a process of their own so decisions are not delayed."""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from threading import BoundedSemaphore
from typing import IO

from submax.bandit import export
from submax.bandit.jobs import JobError, JobRunner
from submax.bandit.store import Store, open_store
from submax.core.errors import InputError, StoreError

MAX_EXPORTS = 2
"""Exports at a time. Each reads a whole log, and takes a core and some hundred megabytes."""
CHUNK_BYTES = 1_000_000
"""What is read at once of a file that is sent."""
PARQUET = "application/vnd.apache.parquet"


class TooManyExportsError(InputError):
    """As many exports as are allowed at a time are being written."""

    default_code = "too-many-requests"


class Exports:
    """Writes exports of a store, a few at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._slots = BoundedSemaphore(MAX_EXPORTS)
        self._jobs = [JobRunner() for _ in range(MAX_EXPORTS)]

    def write(self, bandit: str, before: float | None = None) -> IO[bytes]:
        """The decisions of a bandit, or those before a Unix time, as an open Parquet file.

        The file has no name any more. Whatever becomes of the answer, nothing is left on the disk.
        """
        if not self._slots.acquire(blocking=False):
            raise TooManyExportsError(
                f"{MAX_EXPORTS} exports are being written, the most at a time: try again "
                "when one has ended"
            )
        try:
            # Its folder, which only this user can read, is deleted with all that is in it.
            with tempfile.TemporaryDirectory(prefix="submax-export-") as folder:
                path = Path(folder) / "decisions.parquet"
                jobs = next((jobs for jobs in self._jobs if not jobs.busy), self._jobs[0])
                jobs.run(write_export, str(self._store.address), bandit, str(path), before)
                return path.open("rb")
        except OSError as error:
            raise StoreError(
                f"the export cannot be written on the server ({error.strerror or error}): free "
                "some space there and try again"
            ) from error
        except JobError as error:
            raise StoreError(
                "the export was interrupted on the server: try again, or see its log"
            ) from error
        finally:
            self._slots.release()

    def close(self) -> None:
        """End the exports under way, and start no more."""
        for jobs in self._jobs:
            jobs.close()


def write_export(address: str, bandit: str, path: str, before: float | None) -> None:
    """Write the decisions of a bandit to a file; runs in another process."""
    with closing(open_store(address, read_only=True)) as store:
        export.export(store, bandit, path, before=before)


async def chunks(
    in_thread: Callable[..., Awaitable[bytes]], file: IO[bytes]
) -> AsyncIterator[bytes]:
    """The parts of an open file, which is closed at the end."""
    try:
        while part := await in_thread(file.read, CHUNK_BYTES):
            yield part
    finally:
        file.close()
