"""Carries out the commands that change settings."""

from typing import Any

import click
import msgspec

from submax.cli.operating.opened_bandit import opened_for_writing
from submax.core.errors import InputError
from submax.live.audit_log import COMMAND_LINE, AuditEntry, AuditLog
from submax.live.declaring.change_settings import change_settings

VERBS = {"paused": "pause", "active": "resume", "archived": "archive"}
"""The operation, as the audit names it, that gives a bandit this status."""


def run_set(place: str, name: str, changes: tuple[str, ...]) -> None:
    """Change settings, and print them."""
    given: dict[str, Any] = {}
    for change in changes:
        _insert(given, change)
    _change(place, name, given, "set", " ".join(changes))
    click.echo(f"The bandit {name} has new settings: {', '.join(changes)}")


def run_status_change(place: str, name: str, status: str) -> None:
    """Change the status of a bandit, and print it."""
    _change(place, name, {"status": status}, VERBS[status], "")
    click.echo(f"The bandit {name} is {status}.")


def _change(place: str, name: str, given: dict[str, Any], operation: str, detail: str) -> None:
    with opened_for_writing(place) as store:
        change_settings(store, name, given)
        AuditLog(store).write(AuditEntry(operation, name, "", COMMAND_LINE, detail))


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
