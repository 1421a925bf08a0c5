"""The result folders below one path."""

from pathlib import Path

from submax.core.checks import did_you_mean
from submax.core.errors import InputError, NotFoundError
from submax.experiments.following.results_folder import ResultsFolder
from submax.experiments.following.run_record import PROGRESS
from submax.experiments.storing.directory import MANIFEST

MOST_FOLDERS = 500
"""Folders that are looked for; pages with more would be slow."""


class Folders:
    """Finds result folders: the given one, if a run has written to it, else those in it."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        if not self.root.is_dir():
            raise InputError(
                f"{root} is no folder, and results are folders: give the --out of a run, or make "
                f"the folder first, mkdir {root}",
                code="no-such-folder",
            )

    def names(self) -> list[str]:
        """The names of all result folders, in order."""
        if _has_results(self.root):
            return [self.root.name]
        found = [one.name for one in self.root.iterdir() if one.is_dir() and _has_results(one)]
        return sorted(found)[:MOST_FOLDERS]

    def folder(self, name: str) -> ResultsFolder:
        """A result folder by its name."""
        names = self.names()
        if name not in names:
            raise NotFoundError(
                f"there is no result folder {name!r:.80}: {did_you_mean(name, names)}the page / "
                "lists all of them"
            )
        return ResultsFolder(self.root if _has_results(self.root) else self.root / name)


def _has_results(path: Path) -> bool:
    try:
        return (path / MANIFEST).exists() or (path / PROGRESS).is_dir()
    except OSError:
        return False
