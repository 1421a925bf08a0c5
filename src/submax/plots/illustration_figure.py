"""The paper's first figure: what each policy has learned from the same observations."""

from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from submax.core.arrays import Floats
from submax.plots.saved import saved
from submax.plots.style import figure_style

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
    table = pq.ParquetFile(directory / "results.parquet").read()
    names = pc.unique(table["policy"]).to_pylist()
    columns = min(3, len(names))
    with figure_style():
        figure = Figure(
            figsize=(2.8 * columns, 2.2 * -(-len(names) // columns)), layout="constrained"
        )
        grid = figure.subplots(-(-len(names) // columns), columns, squeeze=False)
        for axes in grid.flat:
            axes.set_axis_off()
        for axes, name in zip(grid.flat, names, strict=False):
            rows = table.filter(pc.equal(table["policy"], name))
            _draw(axes, name, rows["probability"].to_numpy(), rows["value"].to_numpy())
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
