"""What a benchmark found, beside what it promised."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

WORDS = {True: "[green]yes[/green]", False: "[red]no[/red]", None: "[yellow]not measured[/yellow]"}


class Claim(NamedTuple):
    """One promise; ``holds`` is None where it could not be measured here."""

    what: str
    measured: str
    limit: str
    holds: bool | None


def print_claims(claims: Sequence[Claim]) -> None:
    """All of them in one table; nothing where a benchmark promises nothing."""
    if not claims:
        return
    rows = [(claim.what, claim.measured, claim.limit, WORDS[claim.holds]) for claim in claims]
    print_table("Claims", ("claim", "measured", "limit", "holds"), rows)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table whose first column is words and whose others are numbers."""
    table = Table(title=title)
    for position, column in enumerate(columns):
        table.add_column(column, justify="right" if position else "left")
    for row in rows:
        table.add_row(*row)
    # A pipe or a log has no width of its own, and rich would fold the table to 80 characters.
    console = Console()
    Console(width=max(console.width, 110)).print(table)
