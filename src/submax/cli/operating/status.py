"""Carries out the command that shows a bandit."""

import click

from submax.cli.operating.opened_bandit import read_bandit
from submax.core.summary import Summary, counted, number, percentage
from submax.live.operating.arm_status import ArmStatus, arm_statuses, recent_contexts
from submax.live.operating.current_probabilities import CurrentProbabilities
from submax.live.operating.notices import notices
from submax.policies.specification import PolicySpecification

COLUMNS = ["decisions", "share", "learned", "reward rate", "95 % interval", "probability"]


def run_status(place: str, name: str | None) -> None:
    """Print the choices with their numbers, and the notices."""
    with read_bandit(place, name) as bandit:
        settings, counts = bandit.projection.settings, bandit.ledger.counts
        serving = bandit.state.serving
        probabilities = CurrentProbabilities().of(serving, recent_contexts(bandit.ledger))
        arms = arm_statuses(serving, bandit.ledger, probabilities)
        sentences = [
            f"Bandit {bandit.name!r}: {settings.status}, "
            f"{PolicySpecification(settings.policy).title}, version "
            f"{bandit.state.serving.version}",
            f"{counted(counts['decisions'], 'decision')}, {counts['learned']:,} learned from, "
            f"{counts['held out']:,} held out, {counts['late rewards']:,} late rewards",
        ]
        click.echo(_summary(sentences, arms))
        for one in notices(bandit.projection, serving, bandit.ledger):
            click.echo(f"NOTICE {one}")


def _summary(sentences: list[str], arms: list[ArmStatus]) -> Summary:
    if all(arm.slot == "" for arm in arms):
        return Summary(sentences, ["action", *COLUMNS], [_row(arm) for arm in arms])
    rows = [[arm.slot, *_row(arm)] for arm in arms]
    return Summary(sentences, ["slot", "choice", *COLUMNS], rows, texts=2)


def _row(arm: ArmStatus) -> list[str]:
    name = arm.choice if arm.status == "active" else f"{arm.choice} ({arm.status})"
    between = "–" if arm.low is None else f"{number(arm.low, 3)} to {number(arm.high, 3)}"
    return [
        name,
        f"{arm.decisions:,}",
        percentage(arm.share),
        f"{arm.rows:,}",
        number(arm.reward_rate),
        between,
        percentage(arm.probability),
    ]
