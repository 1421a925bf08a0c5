"""The text of a page of the repository, as the site needs it."""

import re
from collections.abc import Callable

FENCED = re.compile(r"^( *```.*?^ *```[^\n]*)$", flags=re.MULTILINE | re.DOTALL)
"""Blocks of code, which are kept as they are."""
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
"""A link or an image: its words, its target and its anchor."""
ELSEWHERE = ("http://", "https://", "mailto:")


def site_text(text: str, link: Callable[[str], str | None]) -> str:
    """Return the text with links that hold in the site; ``link`` gives the new target of a link.

    A link whose target has no place in the site becomes its words. The contents of ``<details>``
    are marked as Markdown, as the site needs it and GitHub does not.
    """

    def replaced(found: re.Match[str]) -> str:
        image, words, target, anchor = found.groups()
        if target.startswith(ELSEWHERE):
            return found[0]
        new = link(target)
        return words if new is None else f"{image}[{words}]({new}{anchor or ''})"

    parts = FENCED.split(text)
    parts[::2] = [
        LINK.sub(replaced, part).replace("<details>", '<details markdown="1">')
        for part in parts[::2]
    ]
    return "".join(parts)
