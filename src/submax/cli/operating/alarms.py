"""Carries out the commands about alarms."""

import click

from submax.cli.operating.access import operated


def run_show(place: str, name: str | None) -> None:
    """Print the alarms, newest first."""
    with operated(place, name) as bandit:
        alarms = bandit.alarms()
    if not alarms:
        click.echo("There were no alarms.")
    for alarm in alarms:
        state = "ACTIVE" if alarm.active else "over  "
        click.echo(f"{state} {alarm.at} {alarm.kind}: {alarm.sentence}")


def run_acknowledge(place: str, name: str) -> None:
    """Say that all alarms were seen."""
    with operated(place, name) as bandit:
        count = bandit.acknowledge_alarms()
    click.echo(f"{count} alarms of {name} were acknowledged.")
