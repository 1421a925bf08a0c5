"""Draws the forest plot of an evaluation again."""

from collections.abc import Sequence
from pathlib import Path

import click

from submax.core.checks import one_of
from submax.simulation.figures.forest import ESTIMATES, read_estimates
from submax.simulation.results import MANIFEST


def is_evaluation(directory: Path) -> bool:
    """Return whether a directory was written by ``submax evaluate``, not by an experiment."""
    return (directory / ESTIMATES).is_file() and not (directory / MANIFEST).exists()


def redraw_evaluation(directory: Path, policies: Sequence[str] = ()) -> None:
    """Draw the forest plot in the directory again, of all policies or only of some.

    If there were several rewards, the plot in the folder of each of them is drawn again.
    """
    from submax.plots import draw_forest

    rows = read_estimates(directory)
    rewards = list(dict.fromkeys(row["reward"] for row in rows if "reward" in row))
    for reward in rewards:
        redraw_evaluation(directory / reward, policies)
    if rewards:
        return
    known = list(dict.fromkeys(row["policy"] for row in rows[1:]))
    for name in policies:
        one_of(f"policy of {directory}:", name, known)
    for path in draw_forest(directory, policies):
        click.echo(f"Written: {path}")
