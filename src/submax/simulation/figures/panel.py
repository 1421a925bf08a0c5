"""Learning curves: the panel that all figures share, and figures of traces and result folders."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from submax.core.arrays import Floats, Integers
from submax.core.checks import one_of, positive
from submax.core.errors import InputError
from submax.simulation.figures.plan import Labels, configurations_in, curves_of
from submax.simulation.figures.style import Figure, figure_style, look_of
from submax.simulation.results import Curve
from submax.simulation.trace import Trace

MEASURES = ("regret", "reward")
RIBBONS = ("ci", "range", "none")
INTERVAL_ERRORS = 1.96
"""Standard errors on both sides of a mean in its 95 % confidence interval."""
COLUMN_INCHES = 3.3
"""The width of a column in a paper of two columns, in inches."""
LONG_NUMBERS = 10_000
"""From this value on, an axis is labelled in thousands; longer numbers would not fit."""
LEGEND_LINE_INCHES, LETTER_INCHES = 0.7, 0.065
"""About the widths of a line and of a letter in a legend, in inches."""
MOST_RIBBONS = 6
"""With more curves in a panel, ribbons would hide each other and none are drawn."""
AXES_LEFT_INCHES, AXES_WIDTH_INCHES = 0.86, 3.89
"""The left edge and the width of the axes in a figure of one panel, in inches."""
# A font by its own name is kept by the texts of a figure that is saved later.
LATEX_FONTS: dict[Any, Any] = {
    "font.family": "cmr10",
    "mathtext.fontset": "cm",
    "axes.formatter.use_mathtext": True,
    "axes.unicode_minus": False,
}
"""The fonts of LaTeX, which matplotlib contains; LaTeX need not be installed."""


class PanelCurve(NamedTuple):
    """The curve of one policy: mean and central 95 % range over replicas at each step.

    ``error`` is the standard error of the mean.
    """

    name: str
    steps: Integers
    mean: Floats
    q025: Floats
    q975: Floats
    error: Floats


def curves(
    source: Mapping[str, Trace] | Path | str,
    *,
    measure: str = "regret",
    title: str = "",
    policies: Sequence[str] = (),
    configuration: Labels | None = None,
    log: bool = False,
    ribbon: str = "range",
    width: float | None = None,
    colours: Mapping[str, str] | None = None,
    latex: bool = False,
    bound: Floats | Callable[[Any], Floats] | None = None,
) -> Figure:
    """Draw the learning curves of several policies in one panel; a notebook shows the figure.

    - ``source``: traces by the names of their policies, or the folder of a sweep. If the folder
      has several configurations, ``configuration`` selects one, such as ``{"arms": 10}``.
    - ``measure``: "regret" or "reward", accumulated.
    - ``policies``: the names to draw, in this order; all if empty.
    - ``log``: decisions on a logarithmic axis, on which a regret of c ln t is a straight line.
    - ``ribbon``: "range" for the central 95 % of replicas, "ci" for the 95 % confidence interval of
      the mean, "none" for the means alone. More than six curves have none.
    - ``width``: inches; `COLUMN_INCHES` fits a column of a paper. Without it, the legend is beside
      the panel.
    - ``colours``: colours of matplotlib by policy; ``latex``: the fonts of LaTeX.
    - ``bound``: a further line, such as that of `submax.simulation.trace.lai_robbins`: its values
      at the decisions of the curves, or a function of these decisions,
      ``lambda steps: lai_robbins(means, steps)``.
    """
    one_of("measure", measure, MEASURES)
    one_of("ribbon", ribbon, RIBBONS)
    if width is not None:
        positive("width", width)
    if isinstance(source, (str, Path)):
        lines = _from_folder(Path(source), measure, configuration or {})
    else:
        lines = _from_traces(source, measure)
    known = {line.name: line for line in lines}
    for name in policies:
        one_of("policy", name, known)
    lines = [known[name] for name in policies] if policies else lines
    replicas = None
    if not isinstance(source, (str, Path)):
        replicas = max(len(trace.rewards) for trace in source.values())
    label = axis_label(measure, ribbon if len(lines) <= MOST_RIBBONS else "none", replicas)
    with figure_style(), rc_context(LATEX_FONTS if latex else {}):
        figure = panel_figure(
            lines, label, title, log=log, ribbon=ribbon, width=width, colours=colours or {}
        )
        if bound is not None:
            axes, steps = figure.axes[0], lines[0].steps
            values = _values_of(bound, steps)
            axes.plot(steps, values, color="black", linestyle=":", label="lower bound")
            axes.legend(**_legend_place(width))
    return figure


def axis_label(measure: str, ribbon: str = "range", replicas: int | None = None) -> str:
    """The label of the vertical axis of a panel."""
    band = {"range": "; band: central 95 %", "ci": "; band: 95 % interval", "none": ""}[ribbon]
    return f"accumulated {measure}\n(mean{band}{f' of {replicas} replicas' if replicas else ''})"


def panel_figure(
    lines: Sequence[PanelCurve],
    label: str,
    title: str,
    *,
    width: float | None = None,
    **options: Any,
) -> Figure:
    """A figure of one panel, whose vertical axis has the ``label``.

    Without a ``width`` its legend is beside the panel. ``options`` are those of `draw_panel`.
    """
    with figure_style():
        if width is None:
            # Margins are fixed, because a layout that measures every text doubles the time to draw.
            legend = legend_width(line.name for line in lines)
            inches = max(6.6, AXES_LEFT_INCHES + AXES_WIDTH_INCHES + legend)
            figure = Figure(figsize=(inches, 3.6))
            axes = figure.add_axes(
                (AXES_LEFT_INCHES / inches, 0.13, AXES_WIDTH_INCHES / inches, 0.78)
            )
        else:
            figure = Figure(figsize=(width, 0.72 * width), layout="constrained")
            axes = figure.add_subplot()
        draw_panel(axes, lines, title, **options)
        axes.set_ylabel(label)
        axes.set_xlabel("decisions")
        axes.legend(**_legend_place(width))
    return figure


def _legend_place(width: float | None) -> dict[str, Any]:
    if width is None:
        return {"loc": "center left", "bbox_to_anchor": (1.02, 0.5)}
    return {"fontsize": "small"}


def legend_width(names: Iterable[str]) -> float:
    """The approximate width of a legend column with these names, in inches."""
    return LEGEND_LINE_INCHES + LETTER_INCHES * max(map(len, names))


def draw_panel(
    axes: Axes,
    lines: Sequence[PanelCurve],
    title: str,
    *,
    points: int = 200,
    log: bool = False,
    ribbon: str = "range",
    colours: Mapping[str, str] | None = None,
) -> None:
    """Draw the curves, reduced to at most ``points`` points each; with ribbons if they are few."""
    ribbons = len(lines) <= MOST_RIBBONS and ribbon != "none"
    for position, line in enumerate(lines):
        look = look_of(line.name, position)
        colour = (colours or {}).get(line.name, look.colour)
        spread = np.geomspace if log else np.linspace
        places = np.searchsorted(line.steps, spread(line.steps[0], line.steps[-1], points))
        kept = np.unique(np.clip(places, 0, len(line.steps) - 1))
        steps = line.steps[kept]
        if ribbons:
            low, high = _ribbon(line, ribbon)
            axes.fill_between(steps, low[kept], high[kept], color=colour, alpha=0.08, linewidth=0)
        axes.plot(
            steps,
            line.mean[kept],
            color=colour,
            linestyle=look.dash,
            linewidth=look.width,
            marker=look.marker,
            markersize=3.5,
            markevery=(0.02 + 0.006 * position, 0.125),
            label=line.name,
        )
    axes.set_title(title)
    last = max(line.steps[-1] for line in lines)
    if log:
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, last)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _thousands(value)))
    top = _top_of_ribbons(lines) if ribbons else _top_of_means(lines)
    axes.set_ylim(min(0.0, 1.03 * min(float(line.mean.min()) for line in lines)), top)
    if top >= LONG_NUMBERS:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _thousands(value)))


def _ribbon(line: PanelCurve, ribbon: str) -> tuple[Floats, Floats]:
    if ribbon == "range":
        return line.q025, line.q975
    reach = INTERVAL_ERRORS * line.error
    return line.mean - reach, line.mean + reach


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


def selected_configurations(directory: Path, wanted: Labels) -> list[Labels]:
    """Return the configurations of a result folder that have the wanted labels."""
    every = configurations_in(directory)
    for key in wanted:
        one_of("key of a configuration", key, every[0])
    found = [one for one in every if wanted.items() <= one.items()]
    if not found:
        raise InputError(f"no configuration in {directory} has {wanted}: it has {every!r:.200}")
    return found


def panel_curves(directory: Path, configuration: Labels, measure: str) -> list[PanelCurve]:
    """The curves of all policies of a result folder in one configuration."""
    columns = ["step", *(f"{measure}_{part}" for part in Curve._fields)]
    return [
        PanelCurve(name, *(rows[column] for column in columns))
        for name, rows in curves_of(directory, configuration).by_policy().items()
    ]


def _from_traces(traces: Mapping[str, Trace], measure: str) -> list[PanelCurve]:
    if not traces:
        raise InputError(
            "curves needs at least one trace by the name of its policy, such as "
            "{'rcp-submax': simulate(...)}, not {}"
        )
    return [
        PanelCurve(name, trace.steps, *Curve.of(getattr(trace, f"accumulated_{measure}")))
        for name, trace in traces.items()
    ]


def _from_folder(directory: Path, measure: str, configuration: Labels) -> list[PanelCurve]:
    found = selected_configurations(directory, configuration)
    if len(found) > 1:
        raise InputError(
            f"{directory} has {len(found)} configurations with {configuration}, and a figure shows "
            f"one: give more labels, such as {found[0]}"
        )
    return panel_curves(directory, found[0], measure)


def _values_of(bound: Floats | Callable[[Any], Floats], steps: Any) -> Floats:
    values: Floats = np.asarray(bound(steps) if callable(bound) else bound, dtype=np.float64)
    if values.shape != steps.shape:
        raise InputError(
            f"bound must have a value for each of the {len(steps)} decisions of the curves, not "
            f"the shape {values.shape}: give a function of the decisions, such as "
            "lambda steps: lai_robbins(means, steps)"
        )
    return values
