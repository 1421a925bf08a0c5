"""Diagrams that pages describe in the language of Mermaid, drawn once as SVG files.

Run ``python -m docs.generators.diagrams MERMAID`` after a change of a diagram. ``MERMAID`` is
the file dist/mermaid.min.js of the npm package mermaid. Browsers that read the site need no
Mermaid.
"""

import hashlib
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

DRAWINGS = "diagrams"
"""The folder of the drawings, in docs/ and in the site."""
FOLDER = Path(__file__).parents[1] / DRAWINGS
BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", flags=re.MULTILINE)
SETTINGS = """{
  startOnLoad: false, theme: "neutral", fontFamily: "system-ui, sans-serif",
  sequence: {actorMargin: 20, wrap: true},
}"""


def with_drawings(text: str, folder: str) -> str:
    """Return a page in which every diagram is an image; ``folder`` leads to those from the page.

    A diagram that has not been drawn yet stays a block of text.
    """

    def image(found: re.Match[str]) -> str:
        name = drawing_name(found[1])
        if not (FOLDER / name).exists():
            return found[0].replace("```mermaid", "```text", 1)
        headings = HEADING.findall(text[: found.start()])
        return f"![Diagram: {headings[-1] if headings else ''}]({folder}/{name}){{ .diagram }}"

    return BLOCK.sub(image, text)


def drawing_name(source: str) -> str:
    """Return the name of the file with the drawing of a diagram."""
    return f"{hashlib.sha256(source.encode()).hexdigest()[:12]}.svg"


def all_diagrams() -> Iterator[str]:
    """Yield the source of every diagram on the pages of docs/."""
    for path in sorted(FOLDER.parent.rglob("*.md")):
        yield from BLOCK.findall(path.read_text(encoding="utf-8"))


def draw(mermaid: Path) -> None:
    """Draw every diagram, and remove drawings of diagrams that are no longer there."""
    from playwright.sync_api import sync_playwright

    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page()
        page.add_script_tag(path=mermaid)
        page.evaluate(f"mermaid.initialize({SETTINGS})")
        for source in all_diagrams():
            svg = page.evaluate("async source => (await mermaid.render('d', source)).svg", source)
            (FOLDER / drawing_name(source)).write_text(svg + "\n", encoding="utf-8")
        browser.close()


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
