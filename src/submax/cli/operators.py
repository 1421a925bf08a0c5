"""The commands for operators: status, lift, set, pause, …, decide and reward."""

import click

from submax.cli.commands import main
from submax.cli.live import BANDIT, ONLY_PLACE, PLACE

NAME = click.argument("bandit", metavar="NAME")


@main.command()
@ONLY_PLACE
@BANDIT
def status(store: str, bandit: str | None) -> None:
    """Show each choice with its decisions, reward rate and current probability.

    The reward rate has a 95 % interval for one look, and is weighted by 1 / propensity. Notices
    below say what should be looked at. The store may be in use.
    """
    from submax.cli.operating.status import run_status

    run_status(store, bandit)


@main.command()
@ONLY_PLACE
@BANDIT
def lift(store: str, bandit: str | None) -> None:
    """Show how much more a decision earns than one of the holdout or of the control.

    The 95 % interval is valid however often you look. The store may be in use.
    """
    from submax.cli.operating.lift import run_lift

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
    from submax.cli.operating.changes import run_set

    run_set(store, bandit, changes)


@main.command()
@PLACE
@NAME
def pause(store: str, bandit: str) -> None:
    """Let a bandit answer with its control or baseline, or uniformly, and not learn.

    If a server has the store file open, give the address of the server.
    """
    from submax.cli.operating.changes import run_status_change

    run_status_change(store, bandit, "paused")


@main.command()
@PLACE
@NAME
def resume(store: str, bandit: str) -> None:
    """Let a paused or archived bandit decide and learn again."""
    from submax.cli.operating.changes import run_status_change

    run_status_change(store, bandit, "active")


@main.command()
@PLACE
@NAME
def archive(store: str, bandit: str) -> None:
    """Let a bandit refuse decisions and rewards; its log can still be read."""
    from submax.cli.operating.changes import run_status_change

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
    from submax.cli.operating.requests import run_decide

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
    from submax.cli.operating.requests import run_reward

    run_reward(store, given.pop("bandit"), identifier, value, **given)
