"""Carries out the commands that read a store: export, backup and doctor."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.live.bandits.open import open_store
from submax.live.log.bandits import bandit_names
from submax.live.log.export import Export
from submax.live.operating.doctor import Finding, examined
from submax.live.store.store import Store

LABELS = {"ok": "ok    ", "damage": "DAMAGE", "advice": "ADVICE"}
"""How findings of each kind begin, all with the same width."""


def run_export(place: str, name: str | None, out: Path | None, rewards: Path | None) -> None:
    """Write the Parquet files, and print how much is in them."""
    with opened_for_reading(place) as store:
        chosen = chosen_bandit(bandit_names(store), name)
        path = out or Path(f"{chosen}.parquet")
        export = Export(store, chosen)
        click.echo(f"{export.write(path)} decisions in {path}")
        if rewards is not None:
            click.echo(f"{export.write_rewards(rewards)} rewards in {rewards}")


def run_backup(place: str, file: Path) -> None:
    """Copy the store into a file, and print its path."""
    with opened_for_reading(place) as store:
        store.backup(file)
    # The address of a database may contain a password.
    source = place if "@" not in place else "the database"
    click.echo(f"Copied {source} to {file}")


def run_doctor(place: str) -> None:
    """Print the findings; exit with status 1 if one of them is damage."""
    damaged = False
    for finding in _findings(place):
        damaged = damaged or finding.kind == "damage"
        click.echo(f"{LABELS[finding.kind]} {finding.sentence}")
    if damaged:
        raise click.exceptions.Exit(1)


def _findings(place: str) -> Iterator[Finding]:
    """Yield the findings; damage because of which a store cannot be read is a finding, too."""
    try:
        with opened_for_reading(place) as store:
            yield from examined(store)
    except InputError as error:
        if not isinstance(error.__cause__, sqlite3.DatabaseError):
            raise
        yield Finding("damage", str(error))


@contextmanager
def opened_for_reading(place: str) -> Iterator[Store]:
    """Open a store for reading only, so that another process may use it at the same time."""
    store = open_store(place, read_only=True)
    try:
        yield store
    finally:
        store.close()


def chosen_bandit(names: list[str], name: str | None) -> str:
    """The bandit of this name, or the only one if no name is given."""
    if name is not None:
        one_of("bandit", name, names)
        return name
    if len(names) != 1:
        if not names:
            raise InputError("the store has no bandits: check the name of the store")
        listed = ", ".join(names)
        raise InputError(f"the store has several bandits: name one of them with --bandit: {listed}")
    return names[0]
