"""What the commands on keys do."""

import click

from submax.cli.inspection import reading
from submax.live.open import open_store
from submax.server.keys import KeyRegistry, check_key


def run_add(
    place: str, scopes: tuple[str, ...], bandits: tuple[str, ...], rate: float | None
) -> None:
    """Print the text of a new key."""
    check_key(scopes, bandits, rate)
    store = open_store(place)
    try:
        number, text = KeyRegistry(store).add(scopes, bandits or None, rate)
    finally:
        store.close()
    click.echo(text)
    click.echo(f"Keep it: it is not stored. Its id is {number}.", err=True)


def run_list(place: str) -> None:
    """Print the keys."""
    with reading(place) as store:
        keys = list(KeyRegistry(store))
    for key in keys:
        where = ", ".join(key.bandits) if key.bandits else "all bandits"
        rate = "" if key.rate is None else f", {key.rate:g} requests a second"
        click.echo(f"{key.id}  {', '.join(key.scopes)}  {where}{rate}")
    if not keys:
        click.echo("There are no keys: the server listens on loopback only, and lets all in.")


def run_revoke(place: str, number: str) -> None:
    """Revoke a key."""
    # A store that is not there must not be made by this.
    with reading(place):
        pass
    store = open_store(place)
    try:
        KeyRegistry(store).revoke(number)
    finally:
        store.close()
    click.echo(f"The key {number} opens nothing any more.")
