"""The commands on logs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from submax.cli.commands import main

LOG = click.argument("log", type=click.Path(path_type=Path), metavar="LOG")
POLICY = (
    "A name, with parameters behind it where others are wanted, "
    "rcp-softmax-submax,estimator.training.steps=1000, or a table as JSON."
)
Command = Callable[..., None]


def log_options(command: Command) -> Command:
    """The options that say what a log holds."""
    options = [
        click.option(
            "--column",
            "columns",
            multiple=True,
            metavar="ROLE=NAME",
            help="Which column is what: action, reward, propensity, context, eligible, id, time or "
            "status; several columns with commas, context=age,country. Can be repeated.",
        ),
        click.option(
            "--declare",
            type=click.Path(path_type=Path),
            metavar="FILE.toml",
            help="What is allowed: actions, action_features, context and rewards, as in "
            "submax.open.",
        ),
        click.option(
            "--action-features",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="A CSV or Parquet file that describes the actions, one in each row: a column "
            "action (with several slots: slot and choice), and a column for each feature.",
        ),
        click.option("--skip-bad-rows", is_flag=True, help="Leave bad rows out, and say how many."),
        click.option("--seed", default=0, show_default=True, metavar="S", help="Of all chance."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def split_options(share: float, what: str) -> Callable[[Command], Command]:
    """The options that say which rows are learned from."""

    def add(command: Command) -> Command:
        by = click.option(
            "--by",
            type=click.Choice(["time", "random"]),
            default="time",
            show_default=True,
            help="The first rows, or random ones.",
        )
        part = click.option("--share", default=share, show_default=True, metavar="X", help=what)
        return part(by(command))

    return add


@main.command()
@LOG
@click.option("--policy", default="rcp-adaptive", show_default=True, metavar="POLICY", help=POLICY)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("policy.safetensors"),
    show_default=True,
    help="The file to write.",
)
@split_options(1.0, "Learn from this share of the rows, and leave the others for evaluation.")
@click.option(
    "--keep-rows",
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="So many of the last rows stay with the policy, for a bandit that starts from it.",
)
@log_options
def learn(log: Path, **options: Any) -> None:
    """Learn a policy from a log: a Parquet or CSV file, or the export of a bandit.

    The result is evaluated by submax evaluate, and served by submax serve STORE --learned FILE.
    """
    from submax.cli.log_commands import run_learn

    run_learn(log, **options)


@main.command()
@LOG
@click.option(
    "--policy",
    "policies",
    multiple=True,
    required=True,
    metavar="POLICY",
    help=f"{POLICY} Or a file from submax learn. Can be repeated.",
)
@click.option(
    "--estimator",
    "estimators",
    multiple=True,
    metavar="NAME",
    help="ips, snips, clipped, dm, dr, switch-dr, dr-shrinkage, replay or pseudo-inverse, or a "
    "table as JSON; all that apply if absent.",
)
@click.option(
    "--interval",
    type=click.Choice(["normal", "bootstrap", "bernstein"]),
    default="normal",
    show_default=True,
    help="How intervals are made.",
)
@click.option("--level", default=0.95, show_default=True, metavar="X", help="Of the intervals.")
@split_options(0.5, "Policies learn from this share of the rows and are evaluated on the others.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("evaluation"),
    show_default=True,
    help="Directory for estimates.csv and the forest plot.",
)
@click.option(
    "--trust", is_flag=True, help="Run the code of learned policies that are of a file of yours."
)
@log_options
def evaluate(log: Path, **options: Any) -> None:
    """Say what policies would have earned in place of the one that wrote a log.

    Every number has an interval, and a warning where it should not be trusted.
    """
    from submax.cli.log_commands import run_evaluate

    run_evaluate(log, **options)


@main.command()
@LOG
@click.option("--policy", required=True, metavar="POLICY", help=POLICY)
@click.option(
    "--search",
    "searches",
    multiple=True,
    required=True,
    metavar="KEY=VALUES",
    help="What to try: estimator.hidden=16,32,64 (these values), estimator.smoothing=0.01..10 (a "
    "range; on a log scale with :log behind it). Can be repeated.",
)
@click.option("--trials", default=20, show_default=True, metavar="N", help="Tables to try.")
@click.option(
    "--estimator", default="dr", show_default=True, metavar="NAME", help="By which to choose."
)
@click.option(
    "--by",
    type=click.Choice(["time", "random"]),
    default="time",
    show_default=True,
    help="The rows are split in this order: half to learn, a quarter to choose, a quarter to tell.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Learn the best from all rows."
)
@log_options
def tune(log: Path, **options: Any) -> None:
    """Choose the parameters of a policy on a log; needs submax[tune].

    Each table of parameters is learned from one part of the log and valued on another; what the
    best is worth is told by a third part, which had no say.
    """
    from submax.cli.log_commands import run_tune

    run_tune(log, **options)
