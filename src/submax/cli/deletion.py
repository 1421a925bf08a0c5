"""Carries out the command that deletes a bandit."""

import click

from submax.cli.inspection import opened_for_reading
from submax.live.audit_log import COMMAND_LINE, AuditEntry, AuditLog
from submax.live.declaring.delete import delete_bandit
from submax.live.open import open_store


def run_delete(place: str, name: str, *, yes: bool) -> None:
    """Delete a bandit, after the user has confirmed it."""
    # Opening a store for writing would create it; a store that does not exist is refused here.
    with opened_for_reading(place):
        pass
    if not yes:
        click.confirm(f"Delete the bandit {name} with its log, for ever?", abort=True)
    store = open_store(place)
    try:
        delete_bandit(store, name)
        AuditLog(store).write(AuditEntry("delete", name, "", COMMAND_LINE))
    finally:
        store.close()
    click.echo(f"The bandit {name} and its log are deleted.")
