"""The record of a run under way, by which others can follow it."""

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import msgspec

from submax.core.running.whole_file import whole_file
from submax.experiments.following.noted_run import FAILED, RUNNING
from submax.experiments.following.planned_cell import PlannedCell
from submax.schema.known_type import known_type

PROGRESS = "progress"
"""The folder of a result directory with the records of runs; absent once a run has succeeded."""
ENDING = ".json"
BEAT_SECONDS = 1.0
"""How often a run touches its record, which shows that its process lives."""
SILENT_SECONDS = 15.0
"""A run whose record was not touched for so long has ended without a word, as by a kill."""


class RunRecord(msgspec.Struct, frozen=True):
    """The cells that a run was asked for, and when it ``started``.

    ``ended`` is empty while the run goes on, and then says in one word how it ended: "stopped" by
    somebody, or "failed".
    """

    started: float
    cells: list[PlannedCell]
    ended: str = ""


def read_records(directory: Path) -> list[tuple[RunRecord, bool]]:
    """Read the records of a result directory, the newest first, each with whether it goes on."""
    found = []
    for path in (directory / PROGRESS).glob(f"*{ENDING}"):
        with suppress(OSError, msgspec.DecodeError):
            record = msgspec.json.decode(path.read_bytes(), type=known_type(RunRecord))
            found.append((record, not record.ended and not _silent(path)))
    return sorted(found, key=lambda one: -one[0].started)


@contextmanager
def recorded_run(directory: Path, cells: Sequence[PlannedCell]) -> Iterator[Path]:
    """Keep a record of a run within a block; yields the folder in which its cells leave notes.

    The record is removed if the block succeeds. Otherwise it stays and says so.
    """
    folder = (directory / PROGRESS).absolute()
    path = folder / f"{os.getpid()}-{secrets.token_hex(4)}{ENDING}"
    record = RunRecord(time.time(), list(cells))
    _begin(path, record)
    ended = Event()
    beat = Thread(target=_beat, args=[path, ended], name="submax-run-record", daemon=True)
    beat.start()
    try:
        yield folder
    except BaseException as error:
        word = "failed" if isinstance(error, Exception) else "stopped"
        ended.set()
        beat.join()
        with suppress(OSError):
            _write(path, msgspec.structs.replace(record, ended=word))
        raise
    ended.set()
    beat.join()
    with suppress(OSError):
        path.unlink(missing_ok=True)
        _clear(folder, cells)
        folder.rmdir()


def _begin(path: Path, record: RunRecord) -> None:
    """Write a record; another run that ends at this moment may remove the folder once or twice."""
    for attempts_left in reversed(range(5)):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _clear(path.parent, record.cells)
            _write(path, record)
        except FileNotFoundError:
            if not attempts_left:
                raise
        else:
            return


def _beat(path: Path, ended: Event) -> None:
    while not ended.wait(BEAT_SECONDS):
        with suppress(OSError):
            os.utime(path)


def _write(path: Path, record: RunRecord) -> None:
    with whole_file(path) as file:
        file.write(msgspec.json.encode(record))


def _clear(folder: Path, cells: Sequence[PlannedCell]) -> None:
    """Remove records of runs that have ended, and old notes about the cells."""
    for path in folder.glob(f"*{ENDING}"):
        with suppress(OSError, msgspec.DecodeError):
            record = msgspec.json.decode(path.read_bytes(), type=known_type(RunRecord))
            if record.ended or _silent(path):
                path.unlink(missing_ok=True)
    notes = {path.name for path in folder.iterdir()}
    for cell in cells:
        for name in notes.intersection(key + end for key in cell.keys for end in (RUNNING, FAILED)):
            (folder / name).unlink(missing_ok=True)


def _silent(path: Path) -> bool:
    return time.time() - path.stat().st_mtime > SILENT_SECONDS
