"""Carries out the command that shows a bandit."""

import click

from submax.cli.operating.access import operated
from submax.core.summary import Summary, counted, number, percentage
from submax.live.operating.arm_status import ArmStatus
from submax.policies.specification import PolicySpecification

COUNTS = ("decisions", "learned", "held out", "late rewards")
"""The counts that are printed."""
COLUMNS = ["decisions", "share", "learned", "reward rate", "95 % interval", "probability"]


def run_status(place: str, name: str | None) -> None:
    """Print the choices with their numbers, and the notices."""
    with operated(place, name) as bandit:
        found = bandit.overview()
    counts = {word: found.counts.get(word, 0) for word in COUNTS}
    sentences = [
        f"Bandit {found.name!r}: {found.status}, {PolicySpecification(found.policy).title}, "
        f"version {found.version}",
        f"{counted(counts['decisions'], 'decision')}, {counts['learned']:,} learned from, "
        f"{counts['held out']:,} held out, {counts['late rewards']:,} late rewards",
    ]
    click.echo(_summary(sentences, found.arms))
    for one in found.notices:
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
