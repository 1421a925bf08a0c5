"""Claims of the benchmarks: what was measured beside the limit that is promised."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

WORDS = {True: "[green]yes[/green]", False: "[red]no[/red]", None: "[yellow]not measured[/yellow]"}


class Claim(NamedTuple):
    """One claim; ``holds`` is None if it could not be measured on this machine."""

    what: str
    measured: str
    limit: str
    holds: bool | None


def print_claims(claims: Sequence[Claim]) -> None:
    """Print all claims in one table; nothing if there are none."""
    if not claims:
        return
    rows = [(claim.what, claim.measured, claim.limit, WORDS[claim.holds]) for claim in claims]
    print_table("Claims", ("claim", "measured", "limit", "holds"), rows)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose first column is text and whose other columns are numbers."""
    table = Table(title=title)
    for position, column in enumerate(columns):
        table.add_column(column, justify="right" if position else "left")
    for row in rows:
        table.add_row(*row)
    # If the output is not a terminal, rich would wrap the table at 80 characters.
    console = Console()
    Console(width=max(console.width, 110)).print(table)
