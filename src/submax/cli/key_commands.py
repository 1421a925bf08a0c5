"""Carries out the commands on keys of the HTTP interface, and shows who changed what."""

import time

import click

from submax.cli.inspection import opened_for_reading
from submax.live.audit_log import COMMAND_LINE, AuditEntry, AuditLog
from submax.live.open import open_store
from submax.server.access.key import Key, parsed_time, time_text
from submax.server.access.key_registry import KeyRegistry, check_key
from submax.server.access.last_use import LastUse


def run_add(
    place: str,
    scopes: tuple[str, ...],
    bandits: tuple[str, ...],
    rate: float | None,
    name: str,
    expires: str | None,
    *,
    browser: bool = False,
) -> None:
    """Add a key to the store, and print its text."""
    check_key(scopes, bandits, rate, name, browser=browser)
    until = None if expires is None else parsed_time(expires, time.time())
    store = open_store(place)
    try:
        registry = KeyRegistry(store)
        number, text = registry.add(
            scopes, bandits or None, rate, name=name, expires=until, browser=browser
        )
        AuditLog(store).write(AuditEntry("add-key", number, "", COMMAND_LINE, ", ".join(scopes)))
    finally:
        store.close()
    click.echo(text)
    click.echo(f"Copy the key now: the store has only a hash of it. Its id is {number}.", err=True)


def run_list(place: str) -> None:
    """Print the id, name, scopes, bandits, rate, expiry and last use of every key."""
    with opened_for_reading(place) as store:
        keys, used = list(KeyRegistry(store)), LastUse(store).times()
    for key in keys:
        click.echo(_line(key, used.get(key.id)))
    if not keys:
        click.echo(
            "The store has no keys: the server accepts all requests, and listens on loopback only."
        )


def _line(key: Key, last_used: float | None) -> str:
    facts = [", ".join(key.bandits) if key.bandits else "all bandits"]
    if key.browser:
        facts.append("for browsers")
    if key.rate is not None:
        facts.append(f"{key.rate:g} requests a second")
    if key.expires is not None:
        word = "expired" if key.has_expired(time.time()) else "expires"
        facts.append(f"{word} {time_text(key.expires)}")
    facts.append("never used" if last_used is None else f"last used {time_text(last_used)}")
    parts = [key.id, key.name, ", ".join(key.scopes), ", ".join(facts)]
    return "  ".join(filter(None, parts))


def run_revoke(place: str, number: str) -> None:
    """Revoke the key with an id."""
    # Opening a store for writing would create it; a store that does not exist is refused here.
    with opened_for_reading(place):
        pass
    store = open_store(place)
    try:
        KeyRegistry(store).revoke(number)
        AuditLog(store).write(AuditEntry("revoke-key", number, "", COMMAND_LINE))
    finally:
        store.close()
    click.echo(f"The key {number} is revoked.")


def run_audit(place: str, last: int) -> None:
    """Print the last changes, newest first."""
    with opened_for_reading(place) as store:
        changes = AuditLog(store).newest(last)
    for at, entry in changes:
        who = f"{entry.name} ({entry.key})".strip() if entry.key else entry.name
        parts = [time_text(at), who, entry.operation, entry.subject, entry.detail]
        click.echo("  ".join(filter(None, parts)))
    if not changes:
        click.echo("No change of bandits or keys was recorded.")
