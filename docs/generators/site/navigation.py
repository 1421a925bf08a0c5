"""The navigation of the site."""

from collections.abc import Iterable, Iterator
from typing import Any

SECTIONS = {
    "tutorials": "Tutorials",
    "how-to": "How-to",
    "reference": "Reference",
    "explanation": "Explanation",
    "results": "Research",
    "research": "Research",
}
"""The section of each folder of pages."""
Entry = str | dict[str, Any]


def completed(navigation: list[dict[str, Any]], pages: Iterable[str]) -> list[dict[str, Any]]:
    """Return the navigation with every page that it does not name at the end of its section.

    Sections without a page are left out.
    """
    pages, listed = set(pages), set(named(navigation))
    if listed - pages:
        raise SystemExit(
            f"zensical.toml names pages that do not exist: {', '.join(sorted(listed - pages))}"
        )
    missing = sorted(pages - listed)
    found = []
    for entry in navigation:
        ((title, inside),) = entry.items()
        if isinstance(inside, list):
            inside = [*inside, *(page for page in missing if _section(page) == title)]
        if inside:
            found.append({title: inside})
    return found


def named(navigation: Iterable[Entry]) -> Iterator[str]:
    """Yield every page that a navigation names."""
    for entry in navigation:
        if isinstance(entry, str):
            yield entry
            continue
        for inside in entry.values():
            yield from named([inside] if isinstance(inside, str) else inside)


def _section(page: str) -> str:
    folder = page.partition("/")[0]
    if folder not in SECTIONS:
        raise SystemExit(
            f"the page {page} is in no section: put it into one of the folders "
            f"{', '.join(SECTIONS)}, or name it in zensical.toml"
        )
    return SECTIONS[folder]
