"""The commands of live bandits."""

from pathlib import Path

import click

from submax.cli.commands import main

STORE = click.argument("store", metavar="STORE")
BANDIT = click.option(
    "--bandit", metavar="NAME", help="Which one; needed where the store has several."
)


@main.command()
@STORE
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, help="Port; 0 takes a free one.")
@click.option(
    "--rate",
    default=20_000.0,
    show_default=True,
    metavar="N",
    help="Requests a second for each key and bandit.",
)
@click.option(
    "--learned",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A policy from submax learn: the store's bandit starts from it.",
)
@click.option("--trust", is_flag=True, help="Run the policy of --learned if it is a file of code.")
def serve(store: str, host: str, port: int, rate: float, learned: Path | None, trust: bool) -> None:
    """Serve the bandits of a store over HTTP.

    STORE is a file, made if it is new, or the address of a PostgreSQL database. With --learned a
    bandit with the name of the file is declared as the log of the policy was, and decides by it
    from the start. Its reward_wait, guard rails and the rest are the defaults, unless they were
    declared before by submax.open(STORE, learned=FILE, reward_wait=...) in Python.
    """
    from submax.core.running.extras import require_extra

    require_extra("server", "the server", "starlette", "uvicorn", "prometheus_client")
    from submax.server.run import serve as run

    run(store, host, port, rate, learned, trust=trust)


@main.command()
@STORE
@BANDIT
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="NAME.parquet if absent."
)
@click.option(
    "--rewards",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write every reward as it came.",
)
def export(store: str, bandit: str | None, out: Path | None, rewards: Path | None) -> None:
    """Write the decisions of a bandit, with their rewards, as a Parquet file.

    The store may be in use: what was committed by now is written.
    """
    from submax.cli.inspection import run_export

    run_export(store, bandit, out, rewards)


@main.command()
@STORE
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
def backup(store: str, file: Path) -> None:
    """Copy a store into a file, which can be opened in its place.

    The store may be in use. A PostgreSQL store becomes a file too.
    """
    from submax.cli.inspection import run_backup

    run_backup(store, file)


@main.command()
@STORE
def doctor(store: str) -> None:
    """Look for damage in a store, and say how its bandits do."""
    from submax.cli.inspection import run_doctor

    run_doctor(store)


@main.group()
def keys() -> None:
    """Make, list and revoke keys of the HTTP interface."""


@keys.command("add")
@STORE
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    metavar="SCOPE",
    help="decide, reward, read or admin; can be repeated.",
)
@click.option(
    "--bandit", "bandits", multiple=True, metavar="NAME", help="Only this one; can be repeated."
)
@click.option("--rate", type=float, metavar="N", help="Requests a second.")
def add_key(
    store: str, scopes: tuple[str, ...], bandits: tuple[str, ...], rate: float | None
) -> None:
    """Make a key; its text is printed this once."""
    from submax.cli.key_commands import run_add

    run_add(store, scopes, bandits, rate)


@keys.command("list")
@STORE
def list_keys(store: str) -> None:
    """List the keys, without their secrets."""
    from submax.cli.key_commands import run_list

    run_list(store)


@keys.command("revoke")
@STORE
@click.argument("number", metavar="ID")
def revoke_key(store: str, number: str) -> None:
    """Let a key open nothing any more."""
    from submax.cli.key_commands import run_revoke

    run_revoke(store, number)
