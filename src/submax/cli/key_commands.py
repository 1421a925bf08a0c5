"""Carries out the commands on keys of the HTTP interface."""

import click

from submax.cli.inspection import opened_for_reading
from submax.live.open import open_store
from submax.server.keys import KeyRegistry, check_key


def run_add(
    place: str, scopes: tuple[str, ...], bandits: tuple[str, ...], rate: float | None
) -> None:
    """Add a key to the store, and print its text."""
    check_key(scopes, bandits, rate)
    store = open_store(place)
    try:
        number, text = KeyRegistry(store).add(scopes, bandits or None, rate)
    finally:
        store.close()
    click.echo(text)
    click.echo(f"Copy the key now: the store has only a hash of it. Its id is {number}.", err=True)


def run_list(place: str) -> None:
    """Print the id, scopes, bandits and rate of every key."""
    with opened_for_reading(place) as store:
        keys = list(KeyRegistry(store))
    for key in keys:
        where = ", ".join(key.bandits) if key.bandits else "all bandits"
        rate = "" if key.rate is None else f", {key.rate:g} requests a second"
        click.echo(f"{key.id}  {', '.join(key.scopes)}  {where}{rate}")
    if not keys:
        click.echo(
            "The store has no keys: the server accepts all requests, and listens on loopback only."
        )


def run_revoke(place: str, number: str) -> None:
    """Revoke the key with an id."""
    # Opening a store for writing would create it; a store that does not exist is refused here.
    with opened_for_reading(place):
        pass
    store = open_store(place)
    try:
        KeyRegistry(store).revoke(number)
    finally:
        store.close()
    click.echo(f"The key {number} is revoked.")
