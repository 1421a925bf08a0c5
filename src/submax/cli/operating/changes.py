"""Carries out the commands that change settings, and the one that deletes a bandit."""

from typing import Any

import click
import msgspec

from submax.cli.operating.access import operated
from submax.core.errors import InputError


def run_set(place: str, name: str, changes: tuple[str, ...]) -> None:
    """Change settings, and print them."""
    given: dict[str, Any] = {}
    for change in changes:
        _insert(given, change)
    with operated(place, name) as bandit:
        bandit.set(given, " ".join(changes))
    click.echo(f"The bandit {name} has new settings: {', '.join(changes)}")


def run_status_change(place: str, name: str, status: str) -> None:
    """Change the status of a bandit, and print it."""
    with operated(place, name) as bandit:
        bandit.change_status(status)
    click.echo(f"The bandit {name} is {status}.")


def run_delete(place: str, name: str, *, yes: bool) -> None:
    """Delete a bandit, after the user has confirmed it."""
    with operated(place, name) as bandit:
        if not yes:
            click.confirm(f"Delete the bandit {name} with its log, for ever?", abort=True)
        bandit.delete()
    click.echo(f"The bandit {name} and its log are deleted.")


def _insert(table: dict[str, Any], change: str) -> None:
    """Put a change such as ``guard_rails.minimum=0.05`` into a table."""
    path, equals, text = change.partition("=")
    *parents, word = path.split(".")
    if not equals or not word:
        raise InputError(
            f"{change!r} was given, and a change has the form SETTING=VALUE: give it as in "
            "refit_rows=200"
        )
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise InputError(
                f"{parent} was given as a whole and in parts: give it once, or only its parts"
            )
    table[word] = value_of(text)


def value_of(text: str) -> Any:
    """The value that a text stands for: JSON if it can be read as such, else the text itself.

    >>> [value_of("0.5"), value_of("null"), value_of("rcp-submax")]
    [0.5, None, 'rcp-submax']
    """
    try:
        return msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        return text
