"""The paper's first figure: what each policy has learned from the same observations."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from submax.core.arrays import Floats
from submax.plots.saved import saved
from submax.plots.style import figure_style
from submax.plots.sweep_results import CURVES
from submax.simulation.running.result_table import ResultTable

PANEL_TITLES = {
    "random": "environment",
    "rcp-negative": "0-conditioned policy",
    "rcp-positive": "1-conditioned policy",
    "rcp-optimized": "optimized policy",
    "rcp-optimistic": "optimistic policy",
    "rcp-submax": "SubMax policy",
}


def draw_illustration(directory: Path) -> list[Path]:
    """Draw the first environment of an illustration as PNG and PDF files beside its results.

    Every panel has the probabilities of one policy. The panel of the random policy has the values
    of the actions instead. A dashed line is at the best action.
    """
    policies = ResultTable.read(directory, CURVES).by_policy()
    columns = min(3, len(policies))
    lines = -(-len(policies) // columns)
    with figure_style():
        figure = Figure(figsize=(2.8 * columns, 2.2 * lines), layout="constrained")
        grid = figure.subplots(lines, columns, squeeze=False)
        for axes in grid.flat:
            axes.set_axis_off()
        for axes, (name, rows) in zip(grid.flat, policies.items(), strict=False):
            _draw(axes, name, rows["probability"], rows["value"])
    return saved(figure, directory / "figures", "illustration")


def _draw(axes: Axes, name: str, probability: Floats, value: Floats) -> None:
    axes.set_axis_on()
    shows_environment = name == "random"
    heights = value if shows_environment else probability
    actions = np.arange(1, len(value) + 1)
    axes.bar(actions, heights, color="#4878a8", edgecolor="black", linewidth=0.4, width=0.8)
    axes.axvline(int(np.argmax(value)) + 1, color="red", linewidth=1.2, linestyle="--")
    expected = float(np.sum(probability * value))
    axes.set_title(f"{PANEL_TITLES.get(name, name)} ({expected:.3g})")
    axes.set_ylabel("value" if shows_environment else "probability")
    axes.set_xlabel("action")
    axes.set_xticks(actions if len(actions) <= 20 else actions[:: len(actions) // 10])
    axes.grid(visible=False)
