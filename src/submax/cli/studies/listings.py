"""Prints what an experiment can be made of: environments, estimators, strategies and delays."""

import dataclasses
import typing
from typing import Any

from rich.console import Console
from rich.table import Table

from submax.core.registry import Registry

WIDTH = 100
"""Characters of a line if the terminal is narrower or its width is not known."""


def print_listing(title: str, folder: Registry[Any]) -> None:
    """Print every class of a folder by its kind, with its first sentence and its parameters."""
    table = Table(box=None, title=title, title_justify="left")
    table.add_column("kind", style="bold", no_wrap=True)
    table.add_column("what it is, and its parameters with their defaults")
    for name in folder.names():
        kind = folder.find(name)
        table.add_row(name, f"{_first_line(kind)}  {_parameters(kind)}")
    console = Console()
    Console(file=console.file, width=max(console.width, WIDTH)).print(table, markup=False)


def _first_line(kind: type) -> str:
    return (kind.__doc__ or "").strip().splitlines()[0]


def _parameters(kind: type) -> str:
    """Return the parameters as they are written in a TOML table."""
    if not dataclasses.is_dataclass(kind):
        return ""
    hints = typing.get_type_hints(kind)
    parts = []
    for field in dataclasses.fields(kind):
        if field.default is not dataclasses.MISSING:
            parts.append(f"{field.name} = {field.default!r}")
        elif field.default_factory is not dataclasses.MISSING:
            parts.append(f"{field.name} = {field.default_factory()!r}")
        else:
            parts.append(f"{field.name}: {getattr(hints[field.name], '__name__', 'value')}")
    return f"({', '.join(parts)})"
