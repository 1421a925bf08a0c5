"""Carries out the commands on keys of the HTTP interface, and shows who changed what."""

import time
from typing import Any

import click

from submax.cli.operating import RemoteServer, opened_for_reading, opened_for_writing
from submax.live.bandits.open import SERVERS, open_store
from submax.live.operating.audit_log import COMMAND_LINE, AuditEntry, AuditLog
from submax.web.server.access.key import parsed_time, time_text
from submax.web.server.access.key_registry import KeyRegistry, check_key
from submax.web.server.access.last_use import LastUse
from submax.web.server.interface.answers import AuditedChange, KeyDetails
from submax.web.server.interface.details import audited_change, key_details


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
    if place.startswith(SERVERS):
        number, text = RemoteServer(place).add_key(
            scopes=scopes,
            bandits=bandits or None,
            rate=rate,
            name=name,
            expires=expires,
            browser=browser,
        )
        administered = True
    else:
        added = {"name": name, "expires": until, "browser": browser}
        number, text, administered = _added(place, scopes, bandits or None, rate, **added)
    click.echo(text)
    click.echo(f"Copy the key now: the store has only a hash of it. Its id is {number}.", err=True)
    if not administered:
        click.echo(
            "Every request needs a key from now on, and no key of the store has the scope admin, "
            "which declares bandits: make one in the same way, with --scope admin.",
            err=True,
        )


def _added(
    place: str,
    scopes: tuple[str, ...],
    bandits: tuple[str, ...] | None,
    rate: float | None,
    **more: Any,
) -> tuple[str, str, bool]:
    """Add a key to a store; return its id, its text, and whether the store has an administrator."""
    # A store that does not exist is made: the server that is started later needs its keys.
    store = open_store(place)
    try:
        registry = KeyRegistry(store)
        number, text = registry.add(scopes, bandits, rate, **more)
        entry = AuditEntry("add-key", number, "", COMMAND_LINE, ", ".join(scopes))
        AuditLog(store).write(entry)
        return number, text, any("admin" in key.scopes for key in registry)
    finally:
        store.close()


def run_list(place: str) -> None:
    """Print the id, name, scopes, bandits, rate, expiry and last use of every key."""
    keys = RemoteServer(place).keys() if place.startswith(SERVERS) else _stored_keys(place)
    for key in keys:
        click.echo(_line(key))
    if not keys:
        click.echo(
            "The store has no keys: the server accepts all requests, and listens on loopback only."
        )


def _stored_keys(place: str) -> list[KeyDetails]:
    with opened_for_reading(place) as store:
        used = LastUse(store).times()
        return [key_details(key, used.get(key.id)) for key in KeyRegistry(store)]


def _line(key: KeyDetails) -> str:
    facts = [", ".join(key.bandits) if key.bandits else "all bandits"]
    if key.browser:
        facts.append("for browsers")
    if key.rate is not None:
        facts.append(f"{key.rate:g} requests a second")
    if key.expires is not None:
        # Times are written in UTC, so that their texts have the order of the times.
        word = "expired" if key.expires <= time_text(time.time()) else "expires"
        facts.append(f"{word} {key.expires}")
    facts.append("never used" if key.last_used is None else f"last used {key.last_used}")
    parts = [key.id, key.name, ", ".join(key.scopes), ", ".join(facts)]
    return "  ".join(filter(None, parts))


def run_revoke(place: str, number: str) -> None:
    """Revoke the key with an id."""
    if place.startswith(SERVERS):
        RemoteServer(place).revoke_key(number)
    else:
        with opened_for_writing(place) as store:
            KeyRegistry(store).revoke(number)
            AuditLog(store).write(AuditEntry("revoke-key", number, "", COMMAND_LINE))
    click.echo(f"The key {number} is revoked.")


def run_audit(place: str, last: int) -> None:
    """Print the last changes, newest first."""
    if place.startswith(SERVERS):
        changes = RemoteServer(place).changes(last)
    else:
        changes = _stored_changes(place, last)
    for one in changes:
        who = f"{one.name} ({one.key})".strip() if one.key else one.name
        parts = [one.at, who, one.operation, one.subject, one.detail]
        click.echo("  ".join(filter(None, parts)))
    if not changes:
        click.echo("No change of bandits or keys was recorded.")


def _stored_changes(place: str, last: int) -> list[AuditedChange]:
    with opened_for_reading(place) as store:
        return [audited_change(at, entry) for at, entry in AuditLog(store).newest(last)]
