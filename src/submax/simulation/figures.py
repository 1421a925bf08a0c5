"""Figures of traces and of result folders; drawing runs no simulation.

Drawing needs matplotlib, ``pip install "submax[plots]"``.
"""

import io
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import one_of, positive
from submax.core.errors import InputError
from submax.core.optional import require_extra
from submax.simulation.experiment import Labels
from submax.simulation.results import (
    CURVE_TABLE,
    ResultTable,
    configurations_in,
    curve_of,
    read_manifest,
    varying_labels,
)
from submax.simulation.trace import Trace

require_extra("plots", "submax.simulation.figures", "matplotlib")

from matplotlib import figure as matplotlib_figure  # noqa: E402 - the package is checked first
from matplotlib import rc_context  # noqa: E402 - as above
from matplotlib.axes import Axes  # noqa: E402 - as above
from matplotlib.colors import to_hex, to_rgb  # noqa: E402 - as above
from matplotlib.ticker import FuncFormatter  # noqa: E402 - as above

__all__ = ["COLUMN_INCHES", "SweepFigure", "curves", "draw_sweep_figure", "sweep_figures"]

# The look of all figures ----------------------------------------------------------------


class Figure(matplotlib_figure.Figure):
    """A figure that a notebook shows, also if it was made without ``pyplot``."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png")
        return content.getvalue()


def figure_style() -> AbstractContextManager[None]:
    return rc_context(
        {
            "font.size": 8,
            "axes.titlesize": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "legend.frameon": False,
            "figure.dpi": 150,
            "pdf.fonttype": 42,
        }
    )


FORMATS = ("png", "pdf")
MAX_PIXELS = 3e6
"""The most pixels of a PNG: a figure of many panels is drawn with fewer dots per inch, so its file
stays below a megabyte."""


def saved(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Save a figure as PNG and PDF in a folder, which is created if necessary."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{name}.{ending}" for ending in FORMATS]
    width, height = figure.get_size_inches()
    for path in paths:
        figure.savefig(path, dpi=min(figure.dpi, (MAX_PIXELS / (width * height)) ** 0.5))
        # The layout is computed once: it takes nearly as long as drawing.
        figure.set_layout_engine("none")
    return paths


Dash = str | tuple[int, tuple[int, ...]]


class Look(NamedTuple):
    """Colour, dash, marker and width of a curve."""

    colour: str
    dash: Dash
    marker: str
    width: float


FAMILIES: tuple[tuple[str, str, Dash, float], ...] = (
    (r"random", "#000000", ":", 1.4),
    (r"rcp-adaptive", "#8b0000", "-", 2.4),
    (r"(rcp|bayes)-.*submax", "#D55E00", "-", 2.0),
    (r"rcp-.*optimized", "#0072B2", (0, (8, 2)), 1.6),
    (r"(rcp|bayes)-.*|advantage-.*|slate-.*", "#CC79A7", (0, (3, 1)), 1.4),
    (r".*epsilon-greedy.*|.*-greedy(-.*)?", "#E69F00", "--", 1.2),
    (r".*thompson.*|.*sampling|.*successive.*|track.*", "#56B4E9", (0, (5, 1, 1, 1)), 1.2),
    (r".*ucb.*|moss.*|imed.*|information-.*", "#009E73", "-.", 1.2),
    (r".*gradient.*|actor-critic|preference-.*", "#7b3fa0", (0, (3, 3)), 1.2),
)
"""The names of each family, as a regular expression, and its colour, dash and width.

The colours of Okabe and Ito (2008) can be told apart by colour-blind readers; the dashes differ in
black and white."""
OTHERS: tuple[Dash, ...] = ("-", "--", "-.", ":")
OTHER_COLOURS = ("#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#a6761d")
MARKERS = ("", "o", "s", "^", "v", "D", "X", "P")
DARKER = 0.22
"""How much darker each further member of a family is than the one before."""


def looks_of(names: Sequence[str]) -> list[Look]:
    """Return the looks of curves in one figure; members of a family differ by shade and marker."""
    members: dict[str, int] = {}
    looks = []
    for position, name in enumerate(names):
        other = OTHER_COLOURS[position % len(OTHER_COLOURS)], OTHERS[position % len(OTHERS)], 1.6
        known = (family[1:] for family in FAMILIES if re.fullmatch(family[0], name))
        colour, dash, width = next(known, other)
        member = members[colour] = members.get(colour, -1) + 1
        red, green, blue = (part * (1 - DARKER * (member % 4)) for part in to_rgb(colour))
        marker = MARKERS[member % len(MARKERS)]
        looks.append(Look(to_hex((red, green, blue)), dash, marker, width))
    return looks


# Learning curves ------------------------------------------------------------------------

MEASURES = ("regret", "reward")
RIBBONS = ("ci", "range", "none")
INTERVAL_ERRORS = 1.96
"""Standard errors on both sides of a mean in its 95 % confidence interval."""
COLUMN_INCHES = 3.3
"""The width of a column in a paper of two columns, in inches."""
LONG_NUMBERS = 10_000
"""From this value on, an axis is labelled in thousands; longer numbers would not fit."""
MOST_RIBBONS = 6
"""With more curves in a panel, ribbons would hide each other and none are drawn."""


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
    colours: Mapping[str, str] = MappingProxyType({}),
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
    - ``colours``: colours of matplotlib by policy.
    """
    one_of("measure", measure, MEASURES)
    one_of("ribbon", ribbon, RIBBONS)
    if width is not None:
        positive("width", width)
    replicas = None
    if not source:
        raise InputError(
            "curves needs at least one trace by the name of its policy, such as "
            "{'rcp-submax': simulate(...)}, not {}"
        )
    if isinstance(source, (str, Path)):
        lines = _from_folder(Path(source), measure, configuration or {})
    else:
        replicas = max(len(trace.rewards) for trace in source.values())
        lines = [
            PanelCurve(name, trace.steps, **curve_of(getattr(trace, f"accumulated_{measure}")))
            for name, trace in source.items()
        ]
    known = {line.name: line for line in lines}
    for name in policies:
        one_of("policy", name, known)
    lines = [known[name] for name in policies or known]
    with figure_style():
        size = (6.6, 3.6) if width is None else (width, 0.72 * width)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        draw_panel(axes, lines, title, log=log, ribbon=ribbon, colours=colours)
        ribbon = ribbon if len(lines) <= MOST_RIBBONS else "none"
        axes.set_ylabel(axis_label(measure, ribbon, replicas))
        axes.set_xlabel("decisions")
        if width is None:
            figure.legend(loc="outside right center")
        else:
            axes.legend(fontsize="small")
    return figure


def axis_label(measure: str, ribbon: str = "range", replicas: int | None = None) -> str:
    band = {"range": "; band: central 95 %", "ci": "; band: 95 % interval", "none": ""}[ribbon]
    return f"accumulated {measure}\n(mean{band}{f' of {replicas} replicas' if replicas else ''})"


def draw_panel(
    axes: Axes,
    lines: Sequence[PanelCurve],
    title: str,
    *,
    points: int = 200,
    log: bool = False,
    ribbon: str = "range",
    colours: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Draw the curves, reduced to at most ``points`` points each; with ribbons if they are few."""
    ribbons = len(lines) <= MOST_RIBBONS and ribbon != "none"
    looks, spread = looks_of([line.name for line in lines]), np.geomspace if log else np.linspace
    for position, (line, look) in enumerate(zip(lines, looks, strict=True)):
        colour = colours.get(line.name, look.colour)
        places = np.searchsorted(line.steps, spread(line.steps[0], line.steps[-1], points))
        kept = np.unique(np.clip(places, 0, len(line.steps) - 1))
        steps = line.steps[kept]
        if ribbons:
            reach = INTERVAL_ERRORS * line.error
            ends = (line.q025, line.q975)
            low, high = ends if ribbon == "range" else (line.mean - reach, line.mean + reach)
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
    if not lines:
        return
    thousands = FuncFormatter(lambda n, _: f"{n / 1000:g}k" if n >= 1000 else f"{n:g}")
    if log:
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, max(line.steps[-1] for line in lines))
        axes.xaxis.set_major_formatter(thousands)
    # Without ribbons the curve of random choice may leave the panel; with them, the panel ends
    # above the ribbons, but at most half above the highest mean.
    others = [line for line in lines if line.name != "random" or ribbons] or lines
    top = 1.05 * max(float(line.mean.max()) for line in others) or 1.0
    if ribbons:
        highest = max(float(line.q975.max()) for line in lines)
        top = 1.03 / 1.05 * np.clip(1.05 * highest, top, 1.5 * top)
    axes.set_ylim(min(0.0, 1.03 * min(float(line.mean.min()) for line in lines)), top)
    if top >= LONG_NUMBERS:
        axes.yaxis.set_major_formatter(thousands)


def panel_curves(
    table: ResultTable, configuration: Labels, measure: str, policies: Sequence[str] = ()
) -> list[PanelCurve]:
    """The curves of all policies in one configuration, or only of some."""
    columns = ["step", *(f"{measure}_{part}" for part in PanelCurve._fields[2:])]
    return [
        PanelCurve(name, *(rows[column] for column in columns))
        for name, rows in table.where(configuration).by_policy().items()
        if not policies or name in policies
    ]


def _from_folder(directory: Path, measure: str, configuration: Labels) -> list[PanelCurve]:
    """The curves of the one configuration of a result folder that has the wanted labels."""
    every = configurations_in(directory)
    for key in configuration:
        one_of("key of a configuration", key, every[0])
    chosen = [one for one in every if configuration.items() <= one.items()]
    if len(chosen) != 1:
        raise InputError(
            f"{directory} has {len(chosen)} configurations with {configuration}, and a figure "
            f"shows one: give labels such as {(chosen or every)[0]}"
        )
    return panel_curves(ResultTable.read(directory, CURVE_TABLE), chosen[0], measure)


# The figures of a sweep -----------------------------------------------------------------

MOST_COLUMNS = 9
"""The most panels beside each other; further panels continue in the next row."""


class SweepFigure(NamedTuple):
    """A figure to draw: its name, its configurations in reading order, columns and measure.

    ``kind`` is "all" for all policies. The others are drawn by `submax.research.paper`: "paper" is
    the best policy of each family, "paired" final values minus those of the default, and "growth"
    regret on logarithmic axes.
    """

    name: str
    panels: list[Labels]
    columns: int
    measure: str = "regret"
    kind: Literal["all", "paper", "paired", "growth"] = "all"


def sweep_figures(directory: Path) -> list[SweepFigure]:
    """The figures that can be drawn from the results in a directory.

    These are one for each configuration; rows in which one value varies, around the ``reference``
    of the experiment; and all configurations. If the measure is reward, all are there for regret
    too.
    """
    specification = read_manifest(directory)["specification"]
    panels = configurations_in(directory)
    varying = varying_labels(panels)
    figures = [SweepFigure(_panel_name(panel, varying), [panel], 1) for panel in panels]
    wanted = specification.get("reference", {}).items()
    reference = max(panels, key=lambda panel: len(panel.items() & wanted))
    for key in varying:
        fixed = {name: reference[name] for name in varying if name != key}
        row = [panel for panel in panels if fixed.items() <= panel.items()]
        if len(row) > 1:
            figures.append(SweepFigure(f"varying-{key}", row, min(len(row), MOST_COLUMNS)))
    if len(panels) > 1:
        columns = min(len({panel[varying[0]] for panel in panels}), MOST_COLUMNS)
        keys = (*varying[1:], varying[0])
        ordered = sorted(panels, key=lambda panel: [_rank(panel[key]) for key in keys])
        figures.append(SweepFigure("all-configurations", ordered, columns))
    if specification.get("measure", "regret") == "regret":
        return figures
    return [
        *(figure._replace(measure="reward") for figure in figures),
        *(figure._replace(name=f"{figure.name}-regret") for figure in figures),
    ]


def _rank(value: Any) -> tuple[bool, bool, Any]:
    """A key to sort labels by: an environment of another kind may lack one, or have a text."""
    return (value is not None, isinstance(value, str), 0 if value is None else value)


def _panel_name(panel: Labels, varying: Sequence[str]) -> str:
    values = [f"{key}={panel[key]}" for key in varying if panel[key] is not None]
    # Some systems do not allow these characters in the name of a file.
    return "-".join(["panel", *values]).replace("/", "_").replace(":", "_")


def draw_sweep_figure(
    directory: Path, wanted: SweepFigure, policies: Sequence[str] = ()
) -> list[Path]:
    """Draw one figure as PNG and PDF files beside the results, of all policies or only of some."""
    specification = read_manifest(directory)["specification"]
    table = ResultTable.read(directory, CURVE_TABLE)
    lines = [panel_curves(table, panel, wanted.measure, policies) for panel in wanted.panels]
    varying = varying_labels(configurations_in(directory))
    titles = [
        ", ".join(f"{key} = {panel[key]}" for key in varying if panel[key] is not None)
        for panel in wanted.panels
    ]
    ribbon = "range" if max(map(len, lines)) <= MOST_RIBBONS else "none"
    label = axis_label(wanted.measure, ribbon, specification["replicas"])
    names = list(dict.fromkeys(line.name for panel in lines for line in panel))
    rows = -(-len(lines) // wanted.columns)
    alone = len(lines) == 1
    with figure_style():
        size = (7.4, 3.6) if alone else (3.4 * wanted.columns, 2.4 * rows + 0.05 * len(names) + 0.6)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows, wanted.columns, squeeze=False)
        handles: dict[str, Any] = {}
        for axes, panel, title in zip(grid.flat, lines, titles, strict=False):
            draw_panel(axes, panel, title, points=200 if alone else 100)
            handles |= {str(line.get_label()): line for line in axes.get_lines()}
        for axes in list(grid.flat)[len(lines) :]:
            axes.set_axis_off()
        for axes in grid[:, 0]:
            axes.set_ylabel(label)
        for axes in grid[-1]:
            axes.set_xlabel("decisions")
        figure.legend(
            handles.values(),
            handles.keys(),
            loc="outside right center" if alone else "outside lower center",
            ncols=1 if alone else min(len(names), 1 + 3 * wanted.columns // 2),
        )
        figure.suptitle(specification.get("title", ""), fontsize=10)
    return saved(figure, directory / "figures", wanted.name)
