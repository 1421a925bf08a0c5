"""Carries out the command that learns a policy from a log."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from submax.cli.logs.best_policy_report import print_best
from submax.cli.logs.evaluation_report import print_notes
from submax.cli.logs.given_policies import learnable
from submax.cli.logs.log_reading import read_log
from submax.cli.logs.output_paths import check_policy_file
from submax.evaluation.choosing.best_policy import learn_best
from submax.evaluation.logs.log import By


def run_learn(
    path: Path,
    policies: Sequence[str],
    out: Path,
    share: float,
    by: By,
    keep_rows: int,
    seed: int,
    **reading: Any,
) -> None:
    """Learn a policy, or the best of several, write it to a file, and print notes about the log."""
    check_policy_file(out)
    wanted = [learnable(one) for one in policies]
    log = read_log(path, **reading)
    best = learn_best(log, wanted or None, share=share, by=by, seed=seed, keep_rows=keep_rows)
    learned = best.learned
    learned.write(out)
    print_notes(log.notes)
    name = policies[0] if len(policies) == 1 else best.winner
    if log.schema.context.width and not learned.policy.traits.uses_context:
        click.echo(f"Note: {name} does not look at the context")
    if learned.origin.estimated_propensities:
        click.echo(f"Note: {learned.origin.estimated_propensities} propensities were estimated")
    print_best(best, with_notes=len(policies) != 1)
    if log.reward.min() == log.reward.max():
        click.echo(
            f"Warning: all rows have the reward {log.reward[0]:g}, from which no policy can learn "
            "which action is better: check the column of rewards, or wait for other rewards"
        )
    click.echo(f"{name} learned from {learned.origin.rows} rows of {path}; written to {out}")
    if learned.origin.rows > len(learned.rows.reward):
        click.echo(f"Note: the file stores the last {len(learned.rows.reward)} rows of the log")
