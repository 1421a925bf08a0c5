"""Build the documentation site into a folder: ``make site``.

The pages of docs/ and some from elsewhere are copied to where they stand in the site, with links
adapted; Zensical does the rest.
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
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
"""A link or an image: its words, its target and its anchor."""


def page_places() -> dict[Path, PurePosixPath]:
    """Return where each file stands in the site; a README.md is the index of its folder."""
    places = {ROOT / name: PurePosixPath(place) for name, place in PAGES_ELSEWHERE.items()}
    for path in sorted(DOCS.rglob("*")):
        place = PurePosixPath(path.relative_to(DOCS).as_posix())
        if path.is_file() and not {"generators", "__pycache__"} & {*place.parts}:
            places[path] = place.with_name("index.md") if place.name == "README.md" else place
    return places


def write_pages(folder: Path) -> None:
    """Write every page and the other files of docs/; files that a page links to are added."""
    places = page_places()
    # Links to the README lead to the first page of the site.
    known = places | {ROOT / "README.md": PurePosixPath("index.md")}

    def adapted(page: Path, link: re.Match[str]) -> str:
        """Return a link that holds in the site, or its words if it leads out of the repository."""
        image, words, target, anchor = link.groups()
        if re.match("https?://|mailto:", target):
            return link[0]
        path = Path(os.path.normpath(page.parent / target))
        path = path / "README.md" if path.is_dir() else path
        if path not in known and path.is_file() and path.is_relative_to(ROOT):
            known[path] = PurePosixPath("files", path.relative_to(ROOT).as_posix())
            copy = folder / known[path]
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        if path not in known:
            return words
        new = os.path.relpath(known[path], places[page].parent)
        return f"{image}[{words}]({new}{anchor or ''})"

    for source, place in places.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix != ".md":
            shutil.copyfile(source, target)
            continue
        # Blocks of code stay as they are. The site needs a mark at folded parts; GitHub does not.
        parts = FENCED.split(source.read_text(encoding="utf-8"))
        for number in range(0, len(parts), 2):
            text = LINK.sub(lambda link, page=source: adapted(page, link), parts[number])
            parts[number] = text.replace("<details>", '<details markdown="1">')
        target.write_text("".join(parts), encoding="utf-8")


def build(target: Path) -> None:
    """Build the site into a new folder, or in place of an earlier site; a warning is an error."""
    if target.exists() and not (target / "objects.inv").is_file():
        raise SystemExit(f"{target} exists and is not a site: name a new folder, such as site")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_pages(folder / "pages")
        text = CONFIGURATION.read_text(encoding="utf-8")
        text = text.replace('docs_dir = "docs"', 'docs_dir = "pages"')
        for inside in ("docs/generators/doctest_blocks.py", "src"):
            text = text.replace(f'"{inside}', f'"{(ROOT / inside).as_posix()}')
        (folder / CONFIGURATION.name).write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "zensical", "build", "--strict"]
        subprocess.run(command, cwd=folder, check=True)
        shutil.rmtree(target, ignore_errors=True)
        shutil.move(folder / "site", target)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
