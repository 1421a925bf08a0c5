"""The figures of a sweep: single panels, rows in which one value varies, and all panels."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from submax.plots.panel import PanelCurve, axis_label, draw_panel, legend_width, panel_figure
from submax.plots.paper_figures import paired_figure, paper_figure
from submax.plots.paper_methods import RANDOM
from submax.plots.saved import saved
from submax.plots.style import figure_style
from submax.plots.sweep_plan import MOST_COLUMNS, SweepFigure
from submax.plots.sweep_results import (
    Labels,
    configurations_in,
    curves_of,
    final_rewards,
    specification_in,
)

LEGEND_MARGIN_INCHES, LEGEND_ROW_INCHES = 0.2, 0.2
"""The height of a grid's legend, in inches: a margin, and the height of each row."""


def draw_sweep_figure(
    directory: Path, wanted: SweepFigure, policies: Sequence[str] = ()
) -> list[Path]:
    """Draw one figure as PNG and PDF files beside the results.

    If ``policies`` are given, only these are drawn.
    """
    specification = specification_in(directory)
    measure = wanted.measure
    if wanted.kind == "paired":
        rewards = final_rewards(directory, wanted.panels[0])
        figure = paired_figure(
            rewards, [name for name in policies if name in rewards] or list(rewards)
        )
        return saved(figure, directory / "figures", wanted.name)
    lines = [_curves(directory, panel, measure, policies) for panel in wanted.panels]
    batches = specification.get("delay", {}).get("kind") == "batch-flush"
    every = configurations_in(directory)
    varying = [key for key in every[0] if len({panel[key] for panel in every}) > 1]
    titles = [_title(panel, "N_b" if batches else "lag", varying) for panel in wanted.panels]
    if wanted.kind == "paper":
        titles = _short_titles(directory, wanted.panels)
        few = len(lines) <= MOST_COLUMNS
        figure = paper_figure(lines, titles, measure, 3 if few else MOST_COLUMNS)
        return saved(figure, directory / "figures", wanted.name)
    scale = axis_label(measure, specification["replicas"], max(map(len, lines)))
    if len(lines) == 1:
        figure = panel_figure(lines[0], scale, titles[0])
    else:
        figure = _grid(lines, titles, wanted.columns, scale)
    return saved(figure, directory / "figures", wanted.name)


def _grid(
    lines: Sequence[Sequence[PanelCurve]], titles: Sequence[str], columns: int, scale: str
) -> Figure:
    rows, width = -(-len(lines) // columns), 3.4 * columns
    names = list(dict.fromkeys(line.name for panel in lines for line in panel))
    legend_columns = _legend_columns(names, width)
    legend = LEGEND_MARGIN_INCHES + LEGEND_ROW_INCHES * -(-len(names) // legend_columns)
    height = 2.4 * rows + legend
    with figure_style():
        figure = Figure(figsize=(width, height))
        grid = figure.subplots(rows, columns, squeeze=False)
        figure.subplots_adjust(
            left=0.75 / width,
            right=1 - 0.15 / width,
            top=1 - 0.3 / height,
            bottom=(legend + 0.45) / height,
            wspace=0.25,
            hspace=0.4,
        )
        for axes, panel, title in zip(grid.flat, lines, titles, strict=False):
            draw_panel(axes, panel, title, points=100)
        for axes in list(grid.flat)[len(lines) :]:
            axes.set_axis_off()
        for axes in grid[:, 0]:
            axes.set_ylabel(scale)
        for axes in grid[-1]:
            axes.set_xlabel("observations")
        handles = {
            label: handle
            for axes in grid.flat
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=legend_columns)
    return figure


def _legend_columns(names: Sequence[str], width: float) -> int:
    """The number of columns of a legend with these names, for a figure of this width."""
    return max(1, min(5, len(names), int(width / legend_width(names))))


def _short_titles(directory: Path, panels: Sequence[Labels]) -> list[str]:
    """Titles with the labels in which the panels differ, and the mean reward of random choice."""
    varying = [key for key in panels[0] if len({str(panel[key]) for panel in panels}) > 1]
    symbols = {"arms": "K", "delay": "N_b", "shift": "s", "beta": "\\beta"}
    titles = []
    for panel in panels:
        values = ", ".join(f"${symbols.get(key, key)}={panel[key]}$" for key in varying)
        mean = _mean_reward(directory, panel) if len(panels) <= MOST_COLUMNS else ""
        titles.append(f"{values} ({mean})" if values and mean else values or mean)
    return titles


def _mean_reward(directory: Path, panel: Labels) -> str:
    """The mean reward of random choice in a configuration, as a part of the title."""
    curves = {one.name: one for one in _curves(directory, panel, "reward")}
    if RANDOM not in curves:
        return ""
    mean = curves[RANDOM].mean[-1] / curves[RANDOM].steps[-1]
    return f"$E[\\bar{{R}}]={mean:.3g}$"


def _curves(
    directory: Path, panel: Labels, measure: str, policies: Sequence[str] = ()
) -> list[PanelCurve]:
    columns = ("step", f"{measure}_mean", f"{measure}_q025", f"{measure}_q975")
    return [
        PanelCurve(name, *(rows[column] for column in columns))
        for name, rows in curves_of(directory, panel).by_policy().items()
        if not policies or name in policies
    ]


def _title(panel: Labels, delay: str, varying: Sequence[str]) -> str:
    if {"arms", "alpha", "beta", "delay"} == panel.keys():
        prior = f"Beta({panel['alpha']}, {panel['beta']})"
        return f"$K={panel['arms']}$, {prior}, ${delay}={panel['delay']}$"
    if "shift" in panel:
        others = [key for key in varying if key not in ("shift", "delay")]
        more = "".join(f", {key} = {_short(panel[key])}" for key in others)
        return f"$s={panel['shift']}$, ${delay}={panel['delay']}${more}"
    return ", ".join(f"{key} = {_short(panel[key])}" for key in varying or panel)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) and abs(value) >= 1e6 else str(value)
