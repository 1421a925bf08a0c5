"""Checks of the paths to which commands write, before any work is done."""

from pathlib import Path

from submax.core.errors import InputError
from submax.evaluation.report.candidates import SUFFIX


def check_folder(path: Path) -> None:
    """Refuse a path to which no file can be written, before any work is done."""
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    if path.is_dir() or not folder.is_dir():
        blocking = path if path.is_dir() else folder
        kind = "a folder" if path.is_dir() else "not a folder"
        raise InputError(
            f"cannot write {str(path)!r}, because {str(blocking)!r} is {kind}: give another --out"
        )


def check_policy_file(path: Path) -> None:
    """Refuse a path to which no learned policy can be written: wrong ending, or no folder."""
    if path.suffix != SUFFIX:
        raise InputError(
            f"--out is {path.name!r}, and the file of a learned policy must end in {SUFFIX}: "
            f"give --out {path.with_suffix(SUFFIX).name}"
        )
    check_folder(path)
    if not path.parent.is_dir():
        raise InputError(
            f"cannot write {str(path)!r}, because there is no folder {str(path.parent)!r}: make "
            "the folder, or give another --out"
        )
