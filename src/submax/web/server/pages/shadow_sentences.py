"""Sentences on how a shadow compares with the policy that decides."""

from submax.live.bandits.bandit import Bandit
from submax.live.monitoring.shadow.shadow_report import ShadowReport
from submax.policies.specification import PolicySpecification
from submax.web.server.pages.verdict import CERTAINTY, between


def shadow_sentences(bandit: Bandit, report: ShadowReport) -> list[str]:
    """What can be said about the shadow now."""
    if report.state == "none":
        return [
            "There is no shadow: a second policy that is asked about every decision and never "
            "displayed, to find out whether it would earn more."
        ]
    name = PolicySpecification(report.policy).title
    if report.state == "stopped":
        return [f"The shadow {name} was switched off: {report.reason}. Set it again to go on."]
    said = f"Of {report.judged:,} decisions that it judged, {report.compared:,} have matured."
    return [_verdict(bandit, report, name), said]


def _verdict(bandit: Bandit, report: ShadowReport, name: str) -> str:
    if report.low is None or report.high is None:
        return f"What the shadow {name} would earn cannot be said yet."
    percent = bandit.settings.rewards["kind"] == "binary"
    span = between(report.low, report.high, percent=percent)
    if report.verdict == "better":
        return f"The shadow {name} would earn {span} more than the policy that decides {CERTAINTY}."
    if report.verdict == "worse":
        span = between(-report.high, -report.low, percent=percent)
        return f"The shadow {name} would earn {span} less than the policy that decides {CERTAINTY}."
    return (
        f"Whether the shadow {name} would earn more than the policy that decides cannot be said "
        f"yet: the difference is {span} {CERTAINTY}."
    )
