"""Build the documentation site into a folder: ``make site``.

The pages of docs/ and some from elsewhere are copied to where they stand in the site, with links
that hold there; Zensical does the rest.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CONFIGURATION = ROOT / "zensical.toml"
LEFT_OUT = {"generators", "__pycache__"}
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
FENCED = re.compile(r"^( *```.*?^ *```[^\n]*)$", flags=re.MULTILINE | re.DOTALL)
"""Blocks of code, which are kept as they are."""
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
"""A link or an image: its words, its target and its anchor."""
ZENSICAL = "import gc; gc.disable(); from zensical.main import cli; cli()"
"""The process ends when the pages are written: to look for garbage takes a sixth of its time."""


class Pages:
    """The files of the site, prepared in ``folder``; a file is there once a page links to it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        own = [path for path in sorted(DOCS.rglob("*")) if path.is_file()]
        self._places = {
            path: _place(path) for path in own if not LEFT_OUT & {*path.relative_to(DOCS).parts}
        }
        self._places |= {ROOT / name: PurePosixPath(to) for name, to in PAGES_ELSEWHERE.items()}
        # The README leads to the site, so links to it lead to the first page.
        self._links = self._places | {ROOT / "README.md": PurePosixPath("index.md")}

    def write(self) -> None:
        """Write every page, and copy the other files of docs/."""
        for source, place in self._places.items():
            target = self._folder / place
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.suffix == ".md":
                target.write_text(self._text(source), encoding="utf-8")
            else:
                shutil.copyfile(source, target)

    def _text(self, source: Path) -> str:
        """Return a page with links that hold in the site; others become their words.

        The contents of ``<details>`` are marked as Markdown, as the site needs it and GitHub does
        not.
        """

        def replaced(found: re.Match[str]) -> str:
            image, words, target, anchor = found.groups()
            if target.startswith(("http://", "https://", "mailto:")):
                return found[0]
            new = self._link(source, target)
            return words if new is None else f"{image}[{words}]({new}{anchor or ''})"

        parts = FENCED.split(source.read_text(encoding="utf-8"))
        parts[::2] = [
            LINK.sub(replaced, part).replace("<details>", '<details markdown="1">')
            for part in parts[::2]
        ]
        return "".join(parts)

    def _link(self, page: Path, target: str) -> str | None:
        """Return the link from a page to a file; a folder has the place of its README."""
        path = Path(os.path.normpath(page.parent / target))
        path = path / "README.md" if path.is_dir() else path
        if path not in self._links and path.is_file() and path.is_relative_to(ROOT):
            place = PurePosixPath("files", path.relative_to(ROOT).as_posix())
            copy = self._folder / place
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            self._links[path] = place
        if path not in self._links:
            return None
        return os.path.relpath(self._links[path], self._places[page].parent)


def _place(path: Path) -> PurePosixPath:
    place = PurePosixPath(path.relative_to(DOCS).as_posix())
    return place.with_name("index.md") if place.name == "README.md" else place


def build(target: Path) -> None:
    """Build the site into a new folder, or in place of an earlier site; a warning is an error."""
    if target.exists() and not (target / "objects.inv").is_file():
        raise SystemExit(f"{target} exists and is no site: name a new folder, such as site")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        Pages(folder / "pages").write()
        text = CONFIGURATION.read_text(encoding="utf-8")
        text = text.replace('docs_dir = "docs"', 'docs_dir = "pages"')
        for inside in ("docs/generators/doctest_blocks.py", "src"):
            text = text.replace(f'"{inside}', f'"{(ROOT / inside).as_posix()}')
        (folder / CONFIGURATION.name).write_text(text, encoding="utf-8")
        command = [sys.executable, "-c", ZENSICAL, "build", "--strict"]
        subprocess.run(command, cwd=folder, check=True)
        if target.exists():
            shutil.rmtree(target)
        shutil.move(folder / "site", target)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
