"""The pages of the documentation, and their blocks of code."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    )
}
"""The text of every page, by its path from the root."""


def blocks(page: str, *languages: str) -> list[tuple[str, str]]:
    """The language and the text of each block in these languages; one with a title is left out."""
    found = re.findall(r"^```(\w+)\n(.*?)^```", PAGES[page], re.DOTALL | re.MULTILINE)
    return [one for one in found if one[0] in languages]


def texts(page: str, language: str) -> list[str]:
    """The blocks in one language."""
    return [text for _, text in blocks(page, language)]
