"""The commands about what runs beside a bandit: shadows and alarms."""

import click

from submax.cli.commands import main
from submax.cli.live import BANDIT, ONLY_PLACE, PLACE

NAME = click.argument("bandit", metavar="NAME")


@main.group()
def shadow() -> None:
    """Compare, set, promote and roll back the shadow of a bandit.

    A shadow is a second policy that decides beside the first: what it would have done is logged and
    compared, and never displayed. If a server has the store file open, give the address of the
    server to set, remove, promote and roll-back; its key is read from SUBMAX_KEY or
    SUBMAX_KEY_FILE.
    """


@shadow.command("show")
@ONLY_PLACE
@BANDIT
def show_shadow(store: str, bandit: str | None) -> None:
    """Show the difference in reward between the shadow and the bandit.

    The 95 % interval is valid however often you look. The store may be in use.
    """
    from submax.cli.operating.shadow import run_show

    run_show(store, bandit)


@shadow.command("set")
@PLACE
@NAME
@click.argument("policy", metavar="POLICY")
def set_shadow(store: str, bandit: str, policy: str) -> None:
    """Let a second policy decide beside the first.

    POLICY is a name of submax policies, or a table as JSON: '{"kind": "thompson", "beta": 9}'.
    """
    from submax.cli.operating.shadow import run_set

    run_set(store, bandit, policy)


@shadow.command("remove")
@PLACE
@NAME
def remove_shadow(store: str, bandit: str) -> None:
    """Let no second policy decide."""
    from submax.cli.operating.shadow import run_set

    run_set(store, bandit, None)


@shadow.command("promote")
@PLACE
@NAME
def promote_shadow(store: str, bandit: str) -> None:
    """Let the shadow decide; the policy that decided becomes the shadow."""
    from submax.cli.operating.shadow import run_promote

    run_promote(store, bandit)


@shadow.command("roll-back")
@PLACE
@NAME
def roll_back_shadow(store: str, bandit: str) -> None:
    """Undo the last promotion: the policy and the version before it decide again."""
    from submax.cli.operating.shadow import run_roll_back

    run_roll_back(store, bandit)


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
    from submax.cli.operating.alarms import run_show

    run_show(store, bandit)


@alarms.command("acknowledge")
@PLACE
@NAME
def acknowledge_alarms(store: str, bandit: str) -> None:
    """Say that all alarms were seen, so that they are no longer active.

    If a server has the store file open, give the address of the server.
    """
    from submax.cli.operating.alarms import run_acknowledge

    run_acknowledge(store, bandit)
