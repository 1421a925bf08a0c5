"""The options that the commands on logs have in common."""

from collections.abc import Callable
from pathlib import Path

import click

from submax.cli.option_list import Command, with_all

LOG = click.argument("log", type=click.Path(path_type=Path), metavar="LOG")
POLICY = (
    "A policy by name (submax policies lists them), by name with parameters, such as "
    "linear-thompson,width=0.5, or as a table in JSON."
)
"""Help of the options that take a policy."""


LOG_OPTIONS = (
    click.option(
        "--column",
        "columns",
        multiple=True,
        metavar="ROLE=NAME",
        help="The column of a role: action, reward, propensity, context, eligible, id, time, "
        "status, cluster (such as a user, whose rows depend on each other), count (of the "
        "decisions that a row stands for), successes (how many of these had the reward 1, in "
        "place of reward), weight (of a row in a sample of a log), session (whose rows follow "
        "each other) or covariate (measured before the decision). Several columns "
        "(also of rewards) are separated by commas, context=age,country, or given by a "
        "pattern, 'context=affinity_*'. Columns with the name of their role are found. Can be "
        "repeated.",
    ),
    click.option(
        "--declare",
        type=click.Path(path_type=Path),
        metavar="FILE.toml",
        help="A file that declares which values are allowed: actions, action_features, context "
        "and rewards, as in submax.open.",
    ),
    click.option(
        "--action-features",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A CSV or Parquet file that describes one action in each row: a column action "
        "(with several slots: slot and choice), and a column for each feature.",
    ),
    click.option(
        "--skip-bad-rows",
        is_flag=True,
        help="Leave out rows with missing or impossible values, and say how many.",
    ),
    click.option(
        "--seed", default=0, show_default=True, metavar="S", help="Seed of all random numbers."
    ),
)
"""The options that say what the columns of a log mean."""


def log_options(command: Command) -> Command:
    """Add the options that say what the columns of a log mean."""
    return with_all(command, LOG_OPTIONS)


def split_options(share: float, what: str) -> Callable[[Command], Command]:
    """Add the options that say which rows policies learn from."""

    def add(command: Command) -> Command:
        by = click.option(
            "--by",
            type=click.Choice(["time", "random"]),
            default="time",
            show_default=True,
            help="Which rows these are: the first by time, or random ones.",
        )
        part = click.option("--share", default=share, show_default=True, metavar="X", help=what)
        return part(by(command))

    return add
