"""Carries out the commands about shadows."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from submax.cli.inspection import chosen_bandit, opened_for_reading
from submax.core.errors import InputError
from submax.live.audit_log import COMMAND_LINE
from submax.live.bandit import Bandit
from submax.live.log.bandits import bandit_names
from submax.live.open import open_store
from submax.live.shadow.shadow_comparison import stored_report
from submax.live.shadow.shadow_report import ShadowReport
from submax.policies.specification import PolicySpecification


def run_show(place: str, name: str | None) -> None:
    """Print how the shadow compares with the policy that decides."""
    with opened_for_reading(place) as store:
        click.echo(_described(stored_report(store, chosen_bandit(bandit_names(store), name))))


def run_set(place: str, name: str, policy: str | None) -> None:
    """Set a shadow, or none."""
    with opened_for_writing(place, name) as bandit:
        bandit.set_shadow(None if policy is None else parsed_policy(policy), by=COMMAND_LINE)
        click.echo(_described(bandit.shadow()))


def run_promote(place: str, name: str) -> None:
    """Let the shadow decide."""
    with opened_for_writing(place, name) as bandit:
        version = bandit.promote_shadow(by=COMMAND_LINE)
        click.echo(f"{name} decides by {_title(bandit.settings.policy)} now, version {version}.")


def run_roll_back(place: str, name: str) -> None:
    """Undo the last promotion."""
    with opened_for_writing(place, name) as bandit:
        version = bandit.roll_back_shadow(by=COMMAND_LINE)
        click.echo(f"{name} decides by {_title(bandit.settings.policy)} again, version {version}.")


@contextmanager
def opened_for_writing(place: str, name: str) -> Iterator[Bandit]:
    """Open a bandit of a store that exists."""
    # Opening a store for writing would create it; a store that does not exist is refused here.
    with opened_for_reading(place):
        pass
    store = open_store(place)
    try:
        with Bandit.of_store(store, name, background=False) as bandit:
            yield bandit
    finally:
        store.close()


def parsed_policy(text: str) -> str | dict[str, Any]:
    """A policy of the command line: a name, or a table as JSON."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        table: dict[str, Any] = json.loads(text)
        return table
    except ValueError as error:
        raise InputError(
            f"the policy {text!r:.80} is no JSON ({error}): give a name, or a table such as "
            '\'{"kind": "thompson", "beta": 9}\''
        ) from error


def _title(policy: str | dict[str, Any]) -> str:
    return PolicySpecification(policy).title


def _described(report: ShadowReport) -> str:
    if report.state == "none":
        return "There is no shadow."
    lines = [f"Shadow {_title(report.policy)}: {report.state}, version {report.version}"]
    if report.reason:
        lines.append(f"It was switched off: {report.reason}")
    lines.append(f"{report.judged:,} decisions judged, {report.compared:,} compared")
    if report.estimate is not None and report.low is not None and report.high is not None:
        lines.append(
            f"Reward per decision compared with the bandit: {report.estimate:+.4g}, 95 % interval "
            f"for any number of looks {report.low:+.4g} to {report.high:+.4g}: {report.verdict}"
        )
    return "\n".join(lines)
