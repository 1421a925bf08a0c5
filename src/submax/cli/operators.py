"""The commands for operators: status, lift, set, pause, resume, archive and decide."""

import click

from submax.cli.commands import main
from submax.cli.live import BANDIT, STORE

NAME = click.argument("bandit", metavar="NAME")


@main.command()
@STORE
@BANDIT
def status(store: str, bandit: str | None) -> None:
    """Show each choice with its decisions, reward rate and current probability.

    The reward rate has a 95 % interval for one look, and is weighted by 1 / propensity. Notices
    below say what should be looked at. The store may be in use.
    """
    from submax.cli.operating.status import run_status

    run_status(store, bandit)


@main.command()
@STORE
@BANDIT
def lift(store: str, bandit: str | None) -> None:
    """Show how much more a decision earns than one of the holdout or of the control.

    The 95 % interval is valid however often you look. The store may be in use.
    """
    from submax.cli.operating.lift import run_lift

    run_lift(store, bandit)


@main.command("set")
@STORE
@NAME
@click.argument("changes", nargs=-1, required=True, metavar="SETTING=VALUE...")
def set_settings(store: str, bandit: str, changes: tuple[str, ...]) -> None:
    """Change settings, the policy or guard rails of a bandit.

    All changes are made, or none: refit_rows=200 policy=rcp-submax guard_rails.minimum=0.05. A
    value is JSON, or a text; null stands for the default. While a server has the store file open,
    send PATCH /bandits/NAME instead.
    """
    from submax.cli.operating.changes import run_set

    run_set(store, bandit, changes)


@main.command()
@STORE
@NAME
def pause(store: str, bandit: str) -> None:
    """Let a bandit answer with its control or baseline, or uniformly, and not learn.

    While a server has the store file open, send POST /bandits/NAME/pause instead.
    """
    from submax.cli.operating.changes import run_status_change

    run_status_change(store, bandit, "paused")


@main.command()
@STORE
@NAME
def resume(store: str, bandit: str) -> None:
    """Let a paused or archived bandit decide and learn again."""
    from submax.cli.operating.changes import run_status_change

    run_status_change(store, bandit, "active")


@main.command()
@STORE
@NAME
def archive(store: str, bandit: str) -> None:
    """Let a bandit refuse decisions and rewards; its log can still be read."""
    from submax.cli.operating.changes import run_status_change

    run_status_change(store, bandit, "archived")


@main.command()
@STORE
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

    While a server has the store file open, send POST /bandits/NAME/decide instead.
    """
    from submax.cli.operating.decide import run_decide

    run_decide(store, bandit, identifier, unit, context)
