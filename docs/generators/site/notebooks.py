"""Tutorials as notebooks, made from the same text as the pages."""

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

PYTHON = re.compile(r"^```python\n(.*?)^```\n?", flags=re.MULTILINE | re.DOTALL)
PAGE_LINK = re.compile(r"(\]\((?!https?:)[^)#\s]+)\.md\b")
"""A link to another page of the site, whose file ends in .html there."""
Cell = dict[str, Any]


def notebook(text: str) -> str:
    """Return a page as the text of a notebook: every block of Python is a cell that can be run."""
    cells = [
        {"id": _identifier(place, cell["source"]), **cell}
        for place, cell in enumerate(_cells(text))
    ]
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": cells,
        "metadata": {"kernelspec": python, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _cells(text: str) -> Iterator[Cell]:
    for place, part in enumerate(PYTHON.split(text)):
        if place % 2:
            code: Cell = {"cell_type": "code", "execution_count": None, "metadata": {}}
            yield {**code, "outputs": [], "source": part.strip("\n")}
        elif part.strip():
            words = PAGE_LINK.sub(r"\1.html", part.strip("\n"))
            yield {"cell_type": "markdown", "metadata": {}, "source": words}


def _identifier(place: int, source: str) -> str:
    """Return an identifier that stays the same as long as the cell does."""
    return hashlib.sha256(f"{place} {source}".encode()).hexdigest()[:12]
