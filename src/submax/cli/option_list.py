"""Adds several options to a command."""

from collections.abc import Callable, Sequence

Command = Callable[..., None]
Option = Callable[[Command], Command]
"""What ``click.option`` returns."""


def with_all(command: Command, options: Sequence[Option]) -> Command:
    """Add options to a command, whose help shows them in this order."""
    for option in reversed(options):
        command = option(command)
    return command
