"""The options that all commands that run an experiment have in common."""

from pathlib import Path

import click

from submax.cli.option_list import Command, with_all

OPTIONS = (
    click.option(
        "--replicas",
        type=int,
        metavar="N",
        help="Independent replicas of each cell (one policy in one configuration); that of the "
        "experiment's file if absent.",
    ),
    click.option(
        "--only",
        multiple=True,
        metavar="KEY=VALUE",
        help="Run only these cells, such as arms=100 or policy=rcp-submax. Can be repeated.",
    ),
    click.option(
        "--out",
        type=click.Path(path_type=Path),
        default=Path("results"),
        show_default=True,
        help="Directory for the results, with one folder for each experiment.",
    ),
    click.option(
        "--jobs", type=int, metavar="N", help="Number of processes; as many as cores if absent."
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Run the cells on the cluster of this Dask scheduler.",
    ),
    click.option(
        "--seed",
        type=int,
        metavar="S",
        help="Seed of all random numbers; that of the experiment's file if absent.",
    ),
    click.option(
        "--quick", is_flag=True, help="Run a small version with few replicas, for a first look."
    ),
    click.option(
        "--all",
        is_flag=True,
        help="Run all policies, also those that the file lists as more_policies.",
    ),
    click.option(
        "--device",
        type=click.Choice(["cpu", "gpu"]),
        help="Where networks are trained; the GPU if absent and JAX finds one.",
    ),
    click.option(
        "--figures/--no-figures",
        default=True,
        help="Whether figures are drawn at the end; submax plot draws them later.",
    ),
)


def run_options(command: Command) -> Command:
    """Add the options of commands that run an experiment."""
    return with_all(command, OPTIONS)
