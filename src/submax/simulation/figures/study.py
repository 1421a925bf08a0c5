"""Figures for papers, from traces or from a result folder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context

from submax.core.arrays import Floats
from submax.core.checks import one_of, positive
from submax.core.errors import InputError
from submax.simulation.figures.plan import Labels, configurations_in, curves_of
from submax.simulation.figures.style import Figure, figure_style, look_of
from submax.simulation.figures.sweep import PanelCurve
from submax.simulation.results import Curve
from submax.simulation.trace import Trace

MEASURES = ("regret", "reward")
RIBBONS = ("ci", "range", "none")
COLUMN_INCHES = 3.3
"""The width of a column in a paper of two columns, in inches."""


@dataclass(frozen=True)
class StudyStyle:
    """What a figure shows and how large it is.

    - ``policies``: the names to draw, in this order; all if empty.
    - ``measure``: "regret" or "reward", accumulated.
    - ``log``: decisions on a logarithmic axis, on which a regret of c ln t is a straight line.
    - ``ribbon``: "ci" for the 95 % confidence interval of the mean, "range" for the central 95 % of
      replicas, "none" for the means alone.
    - ``width``: inches; the default fits a column of a paper. The height is 0.72 of it.
    - ``colours``: colours of matplotlib by policy.
    - ``serif``: the fonts of LaTeX, which matplotlib contains; LaTeX need not be installed.
    """

    policies: tuple[str, ...] = ()
    measure: str = "regret"
    log: bool = False
    ribbon: str = "ci"
    width: float = COLUMN_INCHES
    colours: Mapping[str, str] = field(default_factory=dict)
    serif: bool = False

    def __post_init__(self) -> None:
        one_of("measure", self.measure, MEASURES)
        one_of("ribbon", self.ribbon, RIBBONS)
        positive("width", self.width)

    def settings(self) -> dict[str, Any]:
        """Return the settings of matplotlib for the fonts."""
        if not self.serif:
            return {}
        # A font by its own name is kept by the texts of a figure that is saved later.
        return {
            "font.family": "cmr10",
            "mathtext.fontset": "cm",
            "axes.formatter.use_mathtext": True,
            "axes.unicode_minus": False,
        }


ROW_INCHES = 0.2
"""The height of the name of a policy, in inches."""


def critical_difference_figure(
    ranks: dict[str, float],
    critical_difference: float,
    groups: list[list[str]],
    width: float = COLUMN_INCHES,
) -> Figure:
    """Draw mean ranks on a line, the best on the left; a bar joins policies that do not differ.

    The arguments are the fields of `MeanRanks`, which ``submax.simulation.compare``
    computes, and its ``groups()``.
    """
    positive("width", width)
    names = sorted(ranks, key=ranks.__getitem__)
    rows, bars = (len(names) + 1) // 2, len(groups)
    height = ROW_INCHES * (rows + bars + 3)
    with figure_style():
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.add_subplot()
        axes.set_axis_off()
        low, high = 1.0, float(max(len(names), 2))
        axes.set_xlim(low - 0.35 * (high - low), high + 0.35 * (high - low))
        axes.set_ylim(-(rows + bars) - 0.5, 2.0)
        axes.plot([low, high], [0, 0], color="black", linewidth=0.8)
        for rank in range(1, int(high) + 1):
            axes.plot([rank, rank], [0, 0.2], color="black", linewidth=0.8)
            axes.text(rank, 0.3, str(rank), ha="center", va="bottom")
        axes.plot([low, low + critical_difference], [1.5, 1.5], color="black", linewidth=1.5)
        axes.text(low, 1.6, f"critical difference {critical_difference:.2f}", va="bottom")
        for number, group in enumerate(groups):
            ends = [min(ranks[name] for name in group), max(ranks[name] for name in group)]
            axes.plot(ends, [-0.4 - number] * 2, color="black", linewidth=2.5, label="group")
        for place, name in enumerate(names):
            left = place < rows
            depth = -bars - 0.5 - (place if left else len(names) - 1 - place)
            side = low - 0.05 * (high - low) if left else high + 0.05 * (high - low)
            axes.plot([ranks[name]] * 2 + [side], [0, depth, depth], color="grey", linewidth=0.6)
            axes.text(
                side,
                depth,
                f"{name} {ranks[name]:.2f}",
                ha="right" if left else "left",
                va="center",
            )
    return figure


INTERVAL_ERRORS = 1.96
"""Standard errors on both sides of a mean in its 95 % confidence interval."""
COLUMN = StudyStyle()
"""The style of a figure for a column of a paper."""
POINTS = 200
"""The most points of a drawn curve."""


def study_figure(
    source: Mapping[str, Trace] | Path | str,
    style: StudyStyle = COLUMN,
    *,
    configuration: Labels | None = None,
    bound: Floats | Callable[[Any], Floats] | None = None,
) -> Figure:
    """Draw the curves of several policies in one panel that fits a column of a paper.

    ``source`` is traces by name, or the folder of a sweep. If the folder has several
    configurations, ``configuration`` selects one, such as ``{"arms": 10}``. ``bound`` is a further
    line, such as that of `submax.simulation.trace.lai_robbins`: its values at the decisions of
    the curves, or a function of these decisions, ``lambda steps: lai_robbins(means, steps)``.
    """
    if isinstance(source, (str, Path)):
        lines = _from_folder(Path(source), style, configuration or {})
    else:
        lines = _from_traces(source, style)
    fonts: Any = style.settings()
    with figure_style(), rc_context(fonts):
        figure = Figure(figsize=(style.width, 0.72 * style.width), layout="constrained")
        axes = figure.add_subplot()
        for position, line in enumerate(lines):
            _draw(axes, line, position, style)
        if bound is not None:
            values = _values_of(bound, lines[0].steps)
            axes.plot(lines[0].steps, values, color="black", linestyle=":", label="lower bound")
        axes.set_xlabel("decisions")
        axes.set_ylabel(f"accumulated {style.measure}")
        axes.set_xscale("log" if style.log else "linear")
        axes.legend(fontsize="small")
    return figure


def selected_configurations(directory: Path, wanted: Labels) -> list[Labels]:
    """Return the configurations of a result folder that have the wanted labels."""
    every = configurations_in(directory)
    for key in wanted:
        one_of("key of a configuration", key, every[0])
    found = [one for one in every if wanted.items() <= one.items()]
    if not found:
        raise InputError(f"no configuration in {directory} has {wanted}: it has {every!r:.200}")
    return found


def _from_traces(traces: Mapping[str, Trace], style: StudyStyle) -> list[PanelCurve]:
    if not traces:
        raise InputError("a figure needs at least one trace by the name of its policy, not {}")
    lines = []
    for name in _ordered(list(traces), style):
        values = getattr(traces[name], f"accumulated_{style.measure}")
        lines.append(PanelCurve(name, traces[name].steps, *Curve.of(values)))
    return lines


def _from_folder(directory: Path, style: StudyStyle, configuration: Labels) -> list[PanelCurve]:
    found = selected_configurations(directory, configuration)
    if len(found) > 1:
        raise InputError(
            f"{directory} has {len(found)} configurations with {configuration}, and a figure shows "
            f"one: give more labels, such as {found[0]}"
        )
    table = curves_of(directory, found[0])
    names = ["step", *(f"{style.measure}_{part}" for part in Curve._fields)]
    if names[-1] not in table.names:
        raise InputError(
            f"the results in {directory} were written by an older version and have no column "
            f"{names[-1]}: run the experiment again"
        )
    policies = table.by_policy()
    return [
        PanelCurve(name, *(policies[name][column] for column in names))
        for name in _ordered(list(policies), style)
    ]


def _values_of(bound: Floats | Callable[[Any], Floats], steps: Any) -> Floats:
    values: Floats = np.asarray(bound(steps) if callable(bound) else bound, dtype=np.float64)
    if values.shape != steps.shape:
        raise InputError(
            f"bound must have a value for each of the {len(steps)} decisions of the curves, not "
            f"the shape {values.shape}: give a function of the decisions, such as "
            "lambda steps: lai_robbins(means, steps)"
        )
    return values


def _ordered(names: Sequence[str], style: StudyStyle) -> Sequence[str]:
    for name in style.policies:
        one_of("policy", name, names)
    return style.policies or names


def _draw(axes: Any, line: PanelCurve, position: int, style: StudyStyle) -> None:
    look = look_of(line.name, position)
    colour = style.colours.get(line.name, look.colour)
    spread = np.geomspace if style.log else np.linspace
    places = np.searchsorted(line.steps, spread(line.steps[0], line.steps[-1], POINTS))
    kept = np.unique(np.clip(places, 0, len(line.steps) - 1))
    steps = line.steps[kept]
    low, high = _ribbon(line, style)
    if style.ribbon != "none":
        axes.fill_between(steps, low[kept], high[kept], color=colour, alpha=0.15, linewidth=0)
    axes.plot(steps, line.mean[kept], color=colour, linestyle=look.dash, label=line.name)


def _ribbon(line: PanelCurve, style: StudyStyle) -> tuple[Floats, Floats]:
    if style.ribbon == "range":
        return line.q025, line.q975
    assert line.error is not None, "these curves have errors"
    reach = INTERVAL_ERRORS * line.error
    return line.mean - reach, line.mean + reach
