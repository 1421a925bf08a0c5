"""Build the documentation site into a folder: ``make site``."""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from functools import partial
from pathlib import Path
from typing import IO, Any

from docs.generators.site.diagrams import DRAWINGS, with_drawings
from docs.generators.site.navigation import completed
from docs.generators.site.notebooks import notebook
from docs.generators.site.page_text import site_text
from docs.generators.site.placed_files import ROOT, PlacedFiles
from docs.generators.site.python_pages import python_pages

CONFIGURATION = ROOT / "zensical.toml"
NAVIGATION = re.compile(r"^nav = \[.*?^\]$", flags=re.MULTILINE | re.DOTALL)
NOTEBOOK_LINE = "\n\n[This page as a notebook]({name})\n"


ZENSICAL = "import gc; gc.disable(); from zensical.main import cli; cli()"
"""The process ends when the pages are written: to look for garbage takes a sixth of its time."""


def build(target: Path, output: IO[str] | None = None) -> None:
    """Build the site into a new folder, or in place of an earlier site; a warning is an error.

    What Zensical prints goes to the file ``output``, or to the terminal.
    """
    if target.exists() and not (target / "objects.inv").is_file():
        raise SystemExit(f"{target} exists and is no site: name a new folder, such as site")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pages = write_pages(folder / "pages")
        (folder / CONFIGURATION.name).write_text(configuration(pages), encoding="utf-8")
        command = [sys.executable, "-c", ZENSICAL, "build", "--strict"]
        subprocess.run(command, cwd=folder, stdout=output, stderr=output, check=True)
        if target.exists():
            shutil.rmtree(target)
        shutil.move(folder / "site", target)


def write_pages(folder: Path) -> list[str]:
    """Write everything from which the site is made into a folder; return the names of all pages."""
    placed = PlacedFiles(folder)
    placed.copy_other_files()
    for source in placed.pages:
        text = site_text(source.read_text(encoding="utf-8"), partial(placed.link, source))
        placed.write_page(source, with_drawings(text, placed.folder_link(source, DRAWINGS)))
    for path in (folder / "tutorials").glob("*.md"):
        _add_notebook(path)
    for name, text in python_pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*.md")]


def _add_notebook(page: Path) -> None:
    """Write a page as a notebook beside it, and say so under its title."""
    text = page.read_text(encoding="utf-8")
    file = page.with_suffix(".ipynb")
    file.write_text(notebook(text), encoding="utf-8")
    title, rest = text.split("\n", 1)
    page.write_text(title + NOTEBOOK_LINE.format(name=file.name) + rest, encoding="utf-8")


def configuration(pages: list[str]) -> str:
    """Return the text of the configuration, for prepared pages and with all of them in it."""
    text = CONFIGURATION.read_text(encoding="utf-8")
    navigation = completed(tomllib.loads(text)["project"]["nav"], pages)
    text = NAVIGATION.sub(lambda _: f"nav = {_toml(navigation)}", text)
    text = text.replace('docs_dir = "docs"', 'docs_dir = "pages"')
    for name in ("docs/generators/", "src"):
        text = text.replace(f'"{name}', f'"{(ROOT / name).as_posix()}{"/" * name.endswith("/")}')
    return text


def _toml(value: Any) -> str:
    """Return lists, tables and texts in the notation of TOML."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        each = (f"{json.dumps(key)} = {_toml(one)}" for key, one in value.items())
        return f"{{ {', '.join(each)} }}"
    return json.dumps(value)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
