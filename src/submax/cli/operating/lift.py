"""Carries out the command that shows the lift of a bandit."""

import click

from submax.cli.operating.access import operated
from submax.core.summary import number
from submax.live.monitoring.lift.lift_report import LiftReport


def run_lift(place: str, name: str | None) -> None:
    """Print the lift over the holdout and over the control."""
    with operated(place, name) as bandit:
        reports = bandit.lift()
    for report in reports:
        for line in _lines(report):
            click.echo(line)


def _lines(report: LiftReport) -> list[str]:
    """The lines about one comparison."""
    test = ", A/A test" if report.aa_test else ""
    lines = [
        f"Lift against the {report.against} ({report.action}{test}): {number(report.estimate)} per "
        f"decision, 95 % interval at all times {_interval(report)}",
        f"  mean reward {number(report.mean)} of {report.decisions:,} decisions, "
        f"{number(report.mean_of_group)} of {report.decisions_of_group:,} of the {report.against}",
    ]
    ratio = report.sample_ratio
    if ratio is not None:
        lines.append(
            f"  share of the {report.against}: {ratio.observed:.4g}, expected "
            f"{ratio.expected:.4g}, p-value at all times {ratio.p_value:.3g}"
        )
    lines += [f"  CAUTION {one}" for one in report.cautions]
    if report.alarm:
        lines[-1] = f"  ALARM {report.cautions[-1]}"
    return lines


def _interval(report: LiftReport) -> str:
    if report.low is None or report.high is None:
        return "not known yet"
    return f"{number(report.low)} to {number(report.high)}"
