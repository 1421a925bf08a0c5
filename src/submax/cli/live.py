"""The commands for live bandits and their options: serve, status, keys and others."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from submax.cli.main import Command, Option, StoreArgument, main, with_all
from submax.web.server.running.serve_options import OPTIONS
from submax.web.server.running.server_option import ServerOption


def server_options(command: Command) -> Command:
    """Add all options of the server; their texts are read by ``ServeOptions``."""
    return with_options(command, OPTIONS)


def with_options(command: Command, options: Sequence[ServerOption]) -> Command:
    """Add options to a command, which gets their texts, or None for those that are absent."""
    return with_all(command, [_option(one) for one in options])


def _option(one: ServerOption) -> Option:
    notes = f"{one.variable}; default: {one.default_text}" if one.default_text else one.variable
    explained = f"{one.help}  [{notes}]"
    if one.flag:
        return click.option(one.word, one.name, is_flag=True, default=None, help=explained)
    return click.option(
        one.word,
        one.name,
        multiple=one.repeats,
        default=() if one.repeats else None,
        metavar=one.metavar,
        help=explained,
    )


STORE = click.argument("store", metavar="STORE")
PLACE = click.argument("store", metavar="STORE|ADDRESS")
"""A store, or the address of a server such as http://127.0.0.1:8000."""
ONLY_STORE = click.argument("store", metavar="[STORE]", cls=StoreArgument)
"""The store of commands without further arguments, which also read it from a variable."""
ONLY_PLACE = click.argument("store", metavar="[STORE|ADDRESS]", cls=StoreArgument)
BANDIT = click.option(
    "--bandit", metavar="NAME", help="Name of the bandit; needed if the store has several."
)
SERVER_MODULES = ("starlette", "uvicorn", "prometheus_client", "jinja2", "pyarrow")
"""What a server imports of its extra."""


@main.command()
@click.argument("store", metavar="[STORE]", required=False)
@server_options
def serve(**given: Any) -> None:
    """Serve the bandits of a store over HTTP.

    STORE is a file, which is created if it does not exist, or the address of a PostgreSQL
    database.

    With --learned a bandit is declared that is named after the store and has the actions and
    context of the policy's log. It decides by the policy from the start. Its reward_wait, guard
    rails and other settings are the defaults, unless they were declared before by
    submax.open(STORE, learned=FILE, reward_wait=...) in Python.

    Every option can be given as an environment variable instead, whose name is in brackets, and
    STORE as SUBMAX_STORE. With _FILE at the end of its name, a variable names a file that has
    the value.
    """
    from submax.core.optional import require_extra
    from submax.live.log.pages.collection_pause import collection_pause
    from submax.web.server.running.serve_options import ServeOptions

    options = ServeOptions.of(given, os.environ)
    require_extra("server", "the server", *SERVER_MODULES)
    # A tenth of the time of importing would go into looking for garbage.
    with collection_pause():
        from submax.web.server.run import serve as run

    run(options)


@main.command()
@click.option(
    "--port", type=int, default=0, show_default=True, help="Port to listen on; 0 for any free port."
)
@click.option(
    "--for",
    "duration",
    metavar="TIME",
    help="When the demo ends, such as 60s or 5m; by Ctrl-C if absent.",
)
@click.option(
    "--visitors",
    type=float,
    default=20.0,
    show_default=True,
    metavar="N",
    help="Visitors per second.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the visitors.")
def demo(port: int, duration: str | None, visitors: float, seed: int) -> None:
    """Start a server with simulated visitors, to look at.

    The visitors of a shop see one of five headlines, and change their taste at half time. One
    headline gets its rewards late, and one never gets any. The server works in a temporary
    folder, which is deleted at the end.
    """
    from submax.cli.compact import seconds
    from submax.core.optional import require_extra

    require_extra("server", "the demo", *SERVER_MODULES)
    from submax.web.server.demo.run import run_demo

    run_demo(port, None if duration is None else seconds(duration, "--for"), visitors, seed)


@main.command()
@ONLY_STORE
@BANDIT
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="File to write; BANDIT.parquet if absent.",
)
@click.option(
    "--rewards",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write all rewards, one in each row, into this Parquet file.",
)
def export(store: str, bandit: str | None, out: Path | None, rewards: Path | None) -> None:
    """Write the decisions of a bandit, with their rewards, to a Parquet file.

    The store may be in use: all decisions committed so far are written.
    """
    from submax.cli.operating import run_export

    run_export(store, bandit, out, rewards)


@main.command()
@STORE
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
def backup(store: str, file: Path) -> None:
    """Copy a store to a file that can be opened in its place.

    The store may be in use. A PostgreSQL store becomes a file, too. The copy is searched for
    damage, and is kept only if there is none.
    """
    from submax.cli.operating import run_backup

    run_backup(store, file)


@main.command()
@ONLY_STORE
def doctor(store: str) -> None:
    """Check a store for damage, and give advice about it.

    Every event and every blob is compared with its checksum; models, stored rows and snapshots are
    compared with the log.
    The exit status is 1 if anything is damaged or missing, and 0 if there is only advice.
    """
    from submax.cli.operating import run_doctor

    run_doctor(store)


@main.command()
@STORE
@click.argument("bandit", metavar="[NAME]", required=False)
@click.option(
    "--older-than",
    metavar="AGE",
    help="Age of the events to move, such as 7d, 12h or 90s; archive_after of each bandit if "
    "absent.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be moved, and move nothing.")
@click.option(
    "--no-vacuum",
    is_flag=True,
    help="Leave free pages in the store's file, where new events will be written.",
)
def compact(
    store: str, bandit: str | None, older_than: str | None, dry_run: bool, no_vacuum: bool
) -> None:
    """Move old events into the archive beside the store.

    All commands read archived events as before. A bandit that is open does the same by itself,
    archive_after seconds after the events came, so that this command is for stores that nobody has
    open, or that should become smaller now.

    Decisions that have not matured stay in the store. A reward for an archived decision is late,
    and a decision with the id of an archived one is a new decision.

    At the end the file is written anew without its free pages (VACUUM), for which the disk needs
    room for a second file of the remaining size. In PostgreSQL this is the task of autovacuum.
    """
    from submax.cli.compact import run_compact

    run_compact(store, bandit, older_than, dry_run=dry_run, vacuum=not no_vacuum)


@main.command()
@PLACE
@click.argument("bandit", metavar="NAME")
@click.option("--yes", is_flag=True, help="Delete without asking.")
def delete(store: str, bandit: str, yes: bool) -> None:
    """Delete a bandit with its log, versions and settings.

    This cannot be undone: make a copy first by submax backup or submax export. The name can be
    declared again. If a server has the store file open, give the address of the server.
    """
    from submax.cli.operating import run_delete

    run_delete(store, bandit, yes=yes)


@main.group()
def keys() -> None:
    """Add, list and revoke keys of the HTTP interface.

    If a server has the store file open, give the address of the server to add and revoke; the key
    of an administrator is read from SUBMAX_KEY or SUBMAX_KEY_FILE.
    """


@keys.command("add")
@ONLY_PLACE
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    metavar="SCOPE",
    help="What the key allows: decide, reward, read or admin. Can be repeated.",
)
@click.option(
    "--bandit",
    "bandits",
    multiple=True,
    metavar="NAME",
    help="A bandit that the key may use; all if absent. Can be repeated.",
)
@click.option(
    "--rate", type=float, metavar="N", help="Most requests per second; the server's if absent."
)
@click.option("--name", default="", metavar="TEXT", help="A name for lists and the audit.")
@click.option(
    "--expires",
    metavar="DATE",
    help="When the key becomes invalid, such as 2030-01-31 or 2030-01-31T12:00:00Z; never if "
    "absent.",
)
@click.option(
    "--browser",
    is_flag=True,
    help="The key is for web pages, where everybody can read it: it may reward, or decide and "
    "reward, from pages of the sites that submax serve --origin names.",
)
def add_key(
    store: str,
    scopes: tuple[str, ...],
    bandits: tuple[str, ...],
    rate: float | None,
    name: str,
    expires: str | None,
    browser: bool,
) -> None:
    """Add a key and print its text.

    The store has only a hash of the text, so that it cannot be printed again. After the first key
    was made, every request to a server needs a key.

    If no store is given, it is read from SUBMAX_STORE, or from the file that SUBMAX_STORE_FILE
    names, so that the password of a database is on no command line.
    """
    from submax.cli.keys import run_add

    run_add(store, scopes, bandits, rate, name, expires, browser=browser)


@keys.command("list")
@ONLY_PLACE
def list_keys(store: str) -> None:
    """List the keys with their expiry and last use, without their secrets."""
    from submax.cli.keys import run_list

    run_list(store)


@keys.command("revoke")
@PLACE
@click.argument("number", metavar="ID")
def revoke_key(store: str, number: str) -> None:
    """Revoke a key, so that the server refuses it."""
    from submax.cli.keys import run_revoke

    run_revoke(store, number)


@main.command()
@ONLY_PLACE
@click.option(
    "--last",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="N",
    help="Number of changes to print.",
)
def audit(store: str, last: int) -> None:
    """Print who changed what, newest first.

    Recorded are changes over HTTP, changes of keys by commands, and all deletions of bandits.
    """
    from submax.cli.keys import run_audit

    run_audit(store, last)


NAME = click.argument("bandit", metavar="NAME")


@main.command()
@ONLY_PLACE
@BANDIT
def status(store: str, bandit: str | None) -> None:
    """Show each choice with its decisions, reward rate and current probability.

    The reward rate has a 95 % interval for one look, and is weighted by 1 / propensity. Notices
    below say what should be looked at. The store may be in use.
    """
    from submax.cli.operating import run_status

    run_status(store, bandit)


@main.command()
@ONLY_PLACE
@BANDIT
def lift(store: str, bandit: str | None) -> None:
    """Show how much more a decision earns than one of the holdout or of the control.

    The 95 % interval is valid however often you look. The store may be in use.
    """
    from submax.cli.operating import run_lift

    run_lift(store, bandit)


@main.command("set")
@PLACE
@NAME
@click.argument("changes", nargs=-1, required=True, metavar="SETTING=VALUE...")
def set_settings(store: str, bandit: str, changes: tuple[str, ...]) -> None:
    """Change settings, the policy or guard rails of a bandit.

    All changes are made, or none: refit_rows=200 policy=rcp-submax guard_rails.minimum=0.05. A
    value is JSON, or a text; null stands for the default. If a server has the store file open, give
    the address of the server; its key is read from SUBMAX_KEY or SUBMAX_KEY_FILE.
    """
    from submax.cli.operating import run_set

    run_set(store, bandit, changes)


@main.command()
@PLACE
@NAME
def pause(store: str, bandit: str) -> None:
    """Let a bandit answer with its control or baseline, or uniformly, and not learn.

    If a server has the store file open, give the address of the server.
    """
    from submax.cli.operating import run_status_change

    run_status_change(store, bandit, "paused")


@main.command()
@PLACE
@NAME
def resume(store: str, bandit: str) -> None:
    """Let a paused or archived bandit decide and learn again."""
    from submax.cli.operating import run_status_change

    run_status_change(store, bandit, "active")


@main.command()
@PLACE
@NAME
def archive(store: str, bandit: str) -> None:
    """Let a bandit refuse decisions and rewards; its log can still be read."""
    from submax.cli.operating import run_status_change

    run_status_change(store, bandit, "archived")


@main.command()
@ONLY_PLACE
@BANDIT
@click.option("--id", "identifier", metavar="ID", help="Id of the decision; a new one if absent.")
@click.option("--unit", metavar="UNIT", help="The visitor or customer for whom it is made.")
@click.option(
    "--context",
    "context",
    multiple=True,
    metavar="FIELD=VALUE",
    help="A value of the context. Can be repeated.",
)
def decide(
    store: str,
    bandit: str | None,
    identifier: str | None,
    unit: str | None,
    context: tuple[str, ...],
) -> None:
    """Make one decision and print it as JSON.

    If a server has the store file open, give the address of the server, such as
    http://127.0.0.1:8000; its key is read from SUBMAX_KEY or SUBMAX_KEY_FILE.
    """
    from submax.cli.operating import run_decide

    run_decide(store, bandit, identifier, unit, context)


@main.command()
@PLACE
@click.argument("identifier", metavar="ID")
@click.argument("value", metavar="VALUE")
@BANDIT
@click.option("--name", metavar="NAME", help="Which of the declared rewards it is.")
@click.option("--slot", metavar="SLOT", help="The slot that earned it.")
@click.option("--key", metavar="KEY", help="Tells several rewards of a decision apart.")
def reward(store: str, identifier: str, value: str, **given: str | None) -> None:
    """Send the reward of a decision and print its receipt as JSON.

    ID is that of the decision. VALUE is a number, or a table or a list as JSON: '{"click": 1}',
    '[1, 0]'. The same reward again changes nothing. If a server has the store file open, give the
    address of the server; its key is read from SUBMAX_KEY or SUBMAX_KEY_FILE.
    """
    from submax.cli.operating import run_reward

    run_reward(store, given.pop("bandit"), identifier, value, **given)


@main.group()
def alarms() -> None:
    """Show and acknowledge the alarms of a bandit.

    There are alarms if the reward rate or the share of rewards that come falls, if numbers of the
    context are far outside of what was seen, if refits fail, and if propensities are too small.
    """


@alarms.command("show")
@ONLY_PLACE
@BANDIT
def show_alarms(store: str, bandit: str | None) -> None:
    """Show the last 100 alarms, newest first.

    The store may be in use.
    """
    from submax.cli.operating import run_show_alarms

    run_show_alarms(store, bandit)


@alarms.command("acknowledge")
@PLACE
@NAME
def acknowledge_alarms(store: str, bandit: str) -> None:
    """Say that all alarms were seen, so that they are no longer active.

    If a server has the store file open, give the address of the server.
    """
    from submax.cli.operating import run_acknowledge_alarms

    run_acknowledge_alarms(store, bandit)
