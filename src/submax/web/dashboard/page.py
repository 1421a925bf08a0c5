"""A page: which template shows the answer of an operation."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """The template of a page, its title, and how often it is loaded again while it is open.

    ``section`` is the name of its entry in the navigation, empty if it has none.
    """

    template: str
    title: str
    section: str = ""
    refresh_seconds: int = 0
