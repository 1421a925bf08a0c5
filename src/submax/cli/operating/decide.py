"""Carries out the command that makes a decision."""

from typing import Any

import click
import msgspec

from submax.cli.inspection import chosen_bandit
from submax.cli.operating.changes import value_of
from submax.cli.operating.opened_bandit import opened_for_writing
from submax.core.errors import InputError
from submax.live.bandit import Bandit
from submax.live.log.bandits import bandit_names


def run_decide(
    place: str,
    name: str | None,
    identifier: str | None,
    unit: str | None,
    context: tuple[str, ...],
) -> None:
    """Make a decision, and print it."""
    with opened_for_writing(place) as store:
        chosen = chosen_bandit(bandit_names(store), name)
        bandit = Bandit.of_store(store, chosen, background=False)
        decision = bandit.decide(_table(context) or None, id=identifier, unit=unit)
        click.echo(msgspec.json.encode(decision).decode())


def _table(context: tuple[str, ...]) -> dict[str, Any]:
    table = {}
    for one in context:
        field, equals, text = one.partition("=")
        if not equals:
            raise InputError(f"{one!r} was given, and a field of a context is FIELD=VALUE")
        table[field] = value_of(text)
    return table
