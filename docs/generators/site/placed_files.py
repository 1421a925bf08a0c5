"""Where each file of the repository stands in the site."""

import os
import shutil
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
LEFT_OUT = ("generators", "__pycache__")
"""Folders in docs/ whose files are not part of the site."""
PAGES_ELSEWHERE = {
    "CONTRIBUTING.md": "how-to/contributing.md",
    "examples/README.md": "how-to/example-shops.md",
    "clients/typescript/README.md": "how-to/typescript-client.md",
    "deploy/README.md": "how-to/deployment-files.md",
    "CHANGELOG.md": "reference/changelog.md",
    "benchmarks/README.md": "research/benchmarks.md",
}
"""Pages outside of docs/ that are part of the site, and where they stand there."""
HOME = {"README.md": "index.md"}
"""The README leads to the site, so links to the README lead to the first page of the site."""
OTHER_FILES = PurePosixPath("files")
"""The folder of the site for files outside of docs/ that a page links to, such as an example."""


class PlacedFiles:
    """The places of files in the site, whose pages are prepared in ``folder``.

    A file outside of docs/ gets a place when a page first links to it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        elsewhere = {ROOT / name: PurePosixPath(place) for name, place in PAGES_ELSEWHERE.items()}
        self._places = {path: _place(path) for path in sorted(DOCS.rglob("*")) if _belongs(path)}
        self._places |= elsewhere
        self.pages = [path for path in self._places if path.suffix == ".md"]
        self._links = self._places | {ROOT / name: PurePosixPath(to) for name, to in HOME.items()}

    def write_page(self, source: Path, text: str) -> None:
        """Write the text of a page to its place."""
        target = self._folder / self._places[source]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def copy_other_files(self) -> None:
        """Copy images, tables and other files that are no pages."""
        for source, place in self._places.items():
            if source.suffix != ".md":
                self._copy(source, place)

    def link(self, page: Path, target: str) -> str | None:
        """Return the link from a page to a file that the page names; None if it has no place.

        A folder has the place of its README; a folder without one has no place.
        """
        path = Path(os.path.normpath(page.parent / target))
        path = path / "README.md" if path.is_dir() else path
        if path not in self._links and path.is_file() and path.is_relative_to(ROOT):
            place = OTHER_FILES / path.relative_to(ROOT).as_posix()
            self._copy(path, place)
            self._links[path] = place
        if path not in self._links:
            return None
        return os.path.relpath(self._links[path], self._places[page].parent)

    def folder_link(self, page: Path, folder: str) -> str:
        """Return the link from a page to a folder of the site."""
        return os.path.relpath(folder, self._places[page].parent)

    def _copy(self, source: Path, place: PurePosixPath) -> None:
        target = self._folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def _belongs(path: Path) -> bool:
    return path.is_file() and not set(path.relative_to(DOCS).parts) & set(LEFT_OUT)


def _place(path: Path) -> PurePosixPath:
    place = PurePosixPath(path.relative_to(DOCS).as_posix())
    return place.with_name("index.md") if place.name == "README.md" else place
