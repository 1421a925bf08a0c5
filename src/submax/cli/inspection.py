"""What the commands on stores do."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.live.doctor import Finding, examined
from submax.live.log.bandits import bandit_names
from submax.live.log.export import Export
from submax.live.open import open_store
from submax.live.store.store import Store


def run_export(place: str, name: str | None, out: Path | None, rewards: Path | None) -> None:
    """Write the files, and say what is in them."""
    with reading(place) as store:
        chosen = _chosen(bandit_names(store), name)
        path = out or Path(f"{chosen}.parquet")
        export = Export(store, chosen)
        click.echo(f"{export.write(path)} decisions in {path}")
        if rewards is not None:
            click.echo(f"{export.write_rewards(rewards)} rewards in {rewards}")


def run_backup(place: str, file: Path) -> None:
    """Copy, and say where."""
    with reading(place) as store:
        store.backup(file)
    click.echo(f"{place} is copied to {file}" if "@" not in place else f"copied to {file}")


def run_doctor(place: str) -> None:
    """Print what was found; a problem is also the exit status."""
    good = True
    for finding in _findings(place):
        good = good and finding.good
        click.echo(f"{'ok     ' if finding.good else 'PROBLEM'} {finding.sentence}")
    if not good:
        raise click.exceptions.Exit(1)


def _findings(place: str) -> Iterator[Finding]:
    """Damage that keeps the store from being read is a finding too."""
    try:
        with reading(place) as store:
            yield from examined(store, bandit_names(store))
    except InputError as error:
        if not isinstance(error.__cause__, sqlite3.DatabaseError):
            raise
        yield Finding(False, str(error))


@contextmanager
def reading(place: str) -> Iterator[Store]:
    """A store that is only read, so that it may be in use."""
    store = open_store(place, read_only=True)
    try:
        yield store
    finally:
        store.close()


def _chosen(names: list[str], name: str | None) -> str:
    if name is not None:
        one_of("bandit", name, names)
        return name
    if len(names) != 1:
        listed = ", ".join(names) or "none"
        raise InputError(f"name one of the bandits with --bandit: {listed}")
    return names[0]
