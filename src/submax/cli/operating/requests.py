"""Carries out the commands that make a decision and send a reward."""

from typing import Any

import click
import msgspec

from submax.cli.operating.access import operated
from submax.cli.operating.changes import value_of
from submax.core.errors import InputError


def run_decide(
    place: str,
    name: str | None,
    identifier: str | None,
    unit: str | None,
    context: tuple[str, ...],
) -> None:
    """Make a decision, and print it."""
    table = _table(context)
    with operated(place, name) as bandit:
        decision = bandit.decide(table, identifier, unit)
    click.echo(msgspec.json.encode(decision).decode())


def run_reward(
    place: str, bandit_name: str | None, identifier: str, text: str, **which: str | None
) -> None:
    """Record a reward, and print its receipt; ``which`` has its key, its name and its slot."""
    value = value_of(text)
    if isinstance(value, (str, bool)) or value is None:
        raise InputError(
            f"the reward was {text!r:.60}, and a number, or a table or a list of numbers as JSON "
            "is allowed: give one such as 1, or '{\"click\": 1}'"
        )
    with operated(place, bandit_name) as bandit:
        receipt = bandit.reward(identifier, value, **which)
    click.echo(msgspec.json.encode(receipt).decode())


def _table(context: tuple[str, ...]) -> dict[str, Any]:
    table = {}
    for one in context:
        field, equals, text = one.partition("=")
        if not equals:
            raise InputError(
                f"{one!r} was given, and a field of a context is FIELD=VALUE: give it as in age=31"
            )
        table[field] = value_of(text)
    return table
