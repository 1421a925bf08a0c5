"""Carries out the commands about alarms."""

from datetime import UTC, datetime

import click

from submax.cli.inspection import chosen_bandit, opened_for_reading
from submax.cli.watching.shadow import opened_for_writing
from submax.live.alarms.alarm_log import AlarmLog
from submax.live.audit_log import COMMAND_LINE
from submax.live.log.bandits import bandit_names


def run_show(place: str, name: str | None) -> None:
    """Print the alarms, newest first."""
    with opened_for_reading(place) as store:
        alarms = AlarmLog(store, chosen_bandit(bandit_names(store), name)).follow()
        if not alarms:
            click.echo("There were no alarms.")
        for alarm in alarms[::-1]:
            at = datetime.fromtimestamp(alarm.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            state = "ACTIVE" if alarm.active else "over  "
            click.echo(f"{state} {at} {alarm.kind}: {alarm.sentence}")


def run_acknowledge(place: str, name: str) -> None:
    """Say that all alarms were seen."""
    with opened_for_writing(place, name) as bandit:
        count = bandit.acknowledge_alarms(by=COMMAND_LINE)
        click.echo(f"{count} alarms of {name} were acknowledged.")
