"""The command that searches for the best parameters of a policy, and its options."""

from pathlib import Path
from typing import Any

import click

from submax.cli.commands import main
from submax.cli.logs.options import LOG, POLICY, log_options


@main.command()
@LOG
@click.option("--policy", required=True, metavar="POLICY", help=POLICY)
@click.option(
    "--search",
    "searches",
    multiple=True,
    required=True,
    metavar="KEY=VALUES",
    help="Values to try for a parameter: a list, estimator.hidden=16,32,64, or a range, "
    "estimator.smoothing=0.01..10, on a logarithmic scale if it ends in :log. Can be repeated.",
)
@click.option("--trials", default=20, show_default=True, metavar="N", help="Number of trials.")
@click.option(
    "--estimator",
    default="dr",
    show_default=True,
    metavar="NAME",
    help="Off-policy estimator whose value is maximized.",
)
@click.option(
    "--by",
    type=click.Choice(["time", "random"]),
    default="time",
    show_default=True,
    help="How the rows are split: by time or at random.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Let the best policy learn from all rows, and write it to this file.",
)
@log_options
def tune(log: Path, **options: Any) -> None:
    """Choose the parameters of a policy on a log; needs submax[tune].

    Every trial learns from one half of the log, and a quarter chooses the best trial. The last
    quarter, which takes no part in the choice, evaluates the best policy.
    """
    from submax.cli.logs.tuning import run_tune

    run_tune(log, **options)
