"""A page of the server for results: its address, what it shows, and how it is made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from submax.web.dashboard.page import Page
from submax.web.results_server.folders import Folders


@dataclass(frozen=True)
class Asked:
    """What a request asks for: a folder's ``name``, and the values of its query by name."""

    name: str
    query: Mapping[str, list[str]]

    def one(self, word: str, default: str = "") -> str:
        """The value of a word, the last one if it was given several times."""
        return (self.query.get(word) or [default])[-1]


@dataclass(frozen=True)
class ResultPage:
    """A page whose ``build`` makes an ``answer`` from the folders and what was asked for."""

    name: str
    path: str
    summary: str
    answer: Any
    build: Callable[[Folders, Asked], Any]
    page: Page
    query: Mapping[str, str] = field(default_factory=dict)
