"""Copies the archives of a store for a backup."""

import shutil
from pathlib import Path

from submax.core.errors import InputError
from submax.live.archive.archive import Archive
from submax.live.archive.segments.segment_folder import SegmentFolder, archive_folder
from submax.live.archive.segments.segment_reader import SegmentReader
from submax.live.log.bandits import bandit_names
from submax.live.store.store import Store


def copy_segments(store: Store, path: Path) -> None:
    """Copy all segments of a store into the folder beside the file ``path``, and verify them.

    Call it after the events were copied: segments are never changed, so that the copy has all that
    its events record. If anything fails, there is no folder.
    """
    folder = SegmentFolder(archive_folder(path))
    if folder.folder.exists():
        raise InputError(
            f"{str(folder.folder)!r} exists and is not replaced: give another name, or delete it"
        )
    try:
        for name in bandit_names(store):
            _copy(store, name, folder)
    except BaseException:
        shutil.rmtree(folder.folder, ignore_errors=True)
        raise


def _copy(store: Store, name: str, folder: SegmentFolder) -> None:
    archive = Archive(store, name)
    archive.follow()
    for segment in archive.segments:
        where = f"segment {segment.number} of the archive of {name!r}"
        data = store.get_segment(name, segment.file)
        SegmentReader.of(data, segment, where)
        folder.put(name, segment.file, data or b"")
        SegmentReader.of(folder.get(name, segment.file), segment, f"the copy of {where}")
