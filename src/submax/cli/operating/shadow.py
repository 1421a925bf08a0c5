"""Carries out the commands about shadows."""

import json
from typing import Any

import click

from submax.cli.operating.access import operated
from submax.core.errors import InputError
from submax.live.monitoring.shadow.shadow_report import ShadowReport
from submax.policies.specification import PolicySpecification


def run_show(place: str, name: str | None) -> None:
    """Print how the shadow compares with the policy that decides."""
    with operated(place, name) as bandit:
        click.echo(_described(bandit.shadow()))


def run_set(place: str, name: str, policy: str | None) -> None:
    """Set a shadow, or none."""
    with operated(place, name) as bandit:
        report = bandit.set_shadow(None if policy is None else parsed_policy(policy))
    click.echo(_described(report))


def run_promote(place: str, name: str) -> None:
    """Let the shadow decide."""
    with operated(place, name) as bandit:
        policy, version = bandit.promote_shadow()
    click.echo(f"{name} decides by {_title(policy)} now, version {version}.")


def run_roll_back(place: str, name: str) -> None:
    """Undo the last promotion."""
    with operated(place, name) as bandit:
        policy, version = bandit.roll_back_shadow()
    click.echo(f"{name} decides by {_title(policy)} again, version {version}.")


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
