"""A panel of learning curves: means over replicas, with ribbons for their central 95 % range."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from submax.core.arrays import Floats, Integers
from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.plots.style import figure_style, look_of
from submax.simulation.cell_result import Curve
from submax.simulation.trace import Trace

LONG_NUMBERS = 10_000
"""From this value on, an axis is labelled in thousands; longer numbers would not fit."""
LEGEND_LINE_INCHES, LETTER_INCHES = 0.7, 0.065
"""About the widths of a line and of a letter in a legend, in inches."""
MOST_RIBBONS = 6
"""With more curves in a panel, ribbons would hide each other and none are drawn."""
AXES_LEFT_INCHES, AXES_WIDTH_INCHES = 0.86, 3.89
"""The left edge and the width of the axes in a figure of one panel, in inches."""


class PanelCurve(NamedTuple):
    """The curve of one policy: mean and central 95 % range over replicas at each step.

    ``error`` is the standard error of the mean, None if it is not known.
    """

    name: str
    steps: Integers
    mean: Floats
    q025: Floats
    q975: Floats
    error: Floats | None = None


def curves(traces: Mapping[str, Trace], measure: str = "regret", title: str = "") -> Figure:
    """Draw the learning curves of simulated traces, by the names of their policies.

    ``measure`` is "regret" or "reward".
    """
    one_of("measure", measure, ["regret", "reward"])
    if not traces:
        raise InputError(
            "curves needs at least one trace by the name of its policy, such as "
            "{'rcp-submax': simulate(...)}, not {}"
        )
    lines = [
        PanelCurve(name, trace.steps, *Curve.of(getattr(trace, f"accumulated_{measure}")))
        for name, trace in traces.items()
    ]
    replicas = max(trace.rewards.shape[0] for trace in traces.values())
    return panel_figure(lines, axis_label(measure, replicas, len(lines)), title)


def axis_label(measure: str, replicas: int, curves: int) -> str:
    """The label of the vertical axis of a panel with this number of curves."""
    shown = "mean, 95 %" if curves <= MOST_RIBBONS else "mean"
    return f"accumulated {measure}\n({shown} of {replicas} replicas)"


def panel_figure(lines: Sequence[PanelCurve], scale: str, title: str) -> Figure:
    """A figure of one panel with its legend at the side; ``scale`` labels the vertical axis."""
    with figure_style():
        # Margins are fixed, because a layout that measures every text doubles the time to draw.
        legend = legend_width(line.name for line in lines)
        width = max(6.6, AXES_LEFT_INCHES + AXES_WIDTH_INCHES + legend)
        figure = Figure(figsize=(width, 3.6))
        axes = figure.add_axes((AXES_LEFT_INCHES / width, 0.13, AXES_WIDTH_INCHES / width, 0.78))
        draw_panel(axes, lines, title)
        axes.set_ylabel(scale)
        axes.set_xlabel("observations")
        axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    return figure


def legend_width(names: Iterable[str]) -> float:
    """The approximate width of a legend column with these names, in inches."""
    return LEGEND_LINE_INCHES + LETTER_INCHES * max(map(len, names))


def draw_panel(axes: Axes, lines: Sequence[PanelCurve], title: str, points: int = 200) -> None:
    """Draw the curves, reduced to at most ``points`` points each; with ribbons if they are few."""
    ribbons = len(lines) <= MOST_RIBBONS
    for position, line in enumerate(lines):
        look = look_of(line.name, position)
        kept = np.unique(np.linspace(0, len(line.steps) - 1, points).round().astype(int))
        steps = line.steps[kept]
        if ribbons:
            axes.fill_between(
                steps, line.q025[kept], line.q975[kept], color=look.colour, alpha=0.06, linewidth=0
            )
        axes.plot(
            steps,
            line.mean[kept],
            color=look.colour,
            linestyle=look.dash,
            linewidth=look.width,
            marker=look.marker,
            markersize=3.5,
            markevery=(0.02 + 0.006 * position, 0.125),
            label=line.name,
        )
    axes.set_title(title)
    axes.set_xlim(0, max(line.steps[-1] for line in lines))
    top = _top_of_ribbons(lines) if ribbons else _top_of_means(lines)
    axes.set_ylim(min(0.0, 1.03 * min(float(line.mean.min()) for line in lines)), top)
    thousands = FuncFormatter(lambda value, _: _thousands(value))
    axes.xaxis.set_major_formatter(thousands)
    if top >= LONG_NUMBERS:
        axes.yaxis.set_major_formatter(thousands)


def _top_of_means(lines: Sequence[PanelCurve]) -> float:
    """The upper end of the axis without ribbons: random choice may leave the panel."""
    others = [line for line in lines if line.name != "random"]
    return 1.05 * max(float(line.mean.max()) for line in others or lines) or 1.0


def _top_of_ribbons(lines: Sequence[PanelCurve]) -> float:
    """The upper end of the axis: above the ribbons, but at most half above the highest mean."""
    ribbon = max(float(line.q975.max()) for line in lines)
    mean = max(float(line.mean.max()) for line in lines)
    return 1.03 * min(max(ribbon, mean), 1.5 * mean) or 1.0


def _thousands(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
