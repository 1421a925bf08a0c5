"""The figures of a sweep: single panels, rows in which one value varies, and all panels."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from submax.core.arrays import Floats, Integers
from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.core.numerics import standard_error
from submax.simulation.figures.plan import (
    CLASSIC,
    MOST_COLUMNS,
    RANDOM,
    SUBMAX,
    Labels,
    MethodLook,
    SweepFigure,
    configurations_in,
    curves_of,
    final_rewards,
    method_of,
    specification_in,
    varying_labels,
)
from submax.simulation.figures.style import Figure, figure_style, look_of, saved
from submax.simulation.results import Curve
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
    band = "; band: central 95 %" if curves <= MOST_RIBBONS else ""
    return f"accumulated {measure}\n(mean{band} of {replicas} replicas)"


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
        axes.set_xlabel("decisions")
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


PANEL_INCHES = (2.9, 2.2)
"""Width and height of a panel; three panels beside each other are as wide as a page."""
SINGLE_PANEL_INCHES = (4.6, 3.2)
"""Width and height of the panel of a figure with one panel."""
NEAR_FACTOR = 2.0
"""The closer look has the families whose regret is at most this multiple of the lowest."""
LABEL_SHARE = 0.28
"""The part of a panel's width that the direct labels take."""
SMALLEST_GAP = 0.065
"""The least distance between two labels, as a share of the axis."""


class PaperCurve(NamedTuple):
    """The curve of a family: its best member in this panel."""

    look: MethodLook
    policy: str
    curve: PanelCurve


def best_of_families(curves: Iterable[PanelCurve], measure: str) -> list[PaperCurve]:
    """Return the curve of each family's best member, by its last mean."""
    sign = 1.0 if measure == "regret" else -1.0
    best: dict[str, PaperCurve] = {}
    for curve in curves:
        look = method_of(curve.name)
        if look is None:
            continue
        held = best.get(look.label)
        if held is None or sign * curve.mean[-1] < sign * held.curve.mean[-1]:
            best[look.label] = PaperCurve(look, curve.name, curve)
    return list(best.values())


def paper_figure(
    panels: Sequence[Sequence[PanelCurve]], titles: Sequence[str], measure: str, columns: int
) -> Figure:
    """Draw lettered panels, each above a closer look at the families with the least regret."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    zoomed = measure == "regret"
    width, height = PANEL_INCHES if len(panels) > 1 else SINGLE_PANEL_INCHES
    with figure_style():
        figure = Figure(figsize=(width * columns, height * rows * (2 if zoomed else 1)))
        figure.set_layout_engine("constrained")
        grid = figure.subplots(rows * (2 if zoomed else 1), columns, squeeze=False)
        for axes in grid.flat:
            axes.set_visible(False)
        for place, (curves, title) in enumerate(zip(panels, titles, strict=True)):
            row, column = divmod(place, columns)
            chosen = best_of_families(curves, measure)
            axes = grid[row * (2 if zoomed else 1), column]
            if chosen:
                _draw(axes, chosen, f"{_letter(place, len(panels))}{title}", measure)
            if zoomed and chosen:
                _draw(grid[2 * row + 1, column], _near(chosen), "", measure, ribbons=False)
            if column == 0:
                axes.set_ylabel(f"accumulated {measure}")
        for axes in grid[-1]:
            axes.set_xlabel("decisions")
    return figure


def _letter(place: int, panels: int) -> str:
    """Return "(a) " for the first of several panels; a number if there are too many for letters."""
    if panels == 1:
        return ""
    return f"({chr(ord('a') + place)}) " if panels <= 26 else f"({place + 1}) "


def _near(chosen: Sequence[PaperCurve]) -> list[PaperCurve]:
    """Return the families of low regret, without random choice."""
    others = [one for one in chosen if one.look.label != RANDOM] or chosen
    lowest = min(float(one.curve.mean[-1]) for one in others)
    return [one for one in others if one.curve.mean[-1] <= NEAR_FACTOR * lowest]


def _draw(
    axes: Axes, chosen: Sequence[PaperCurve], title: str, measure: str, *, ribbons: bool = True
) -> None:
    axes.set_visible(True)
    axes.set_title(title, loc="left")
    sign = 1.0 if measure == "regret" else -1.0
    classics = [one for one in chosen if one.look.label in CLASSIC]
    best_classic = min(classics, key=lambda one: sign * one.curve.mean[-1], default=None)
    for one in chosen:
        ribbon = one.look.label in (SUBMAX, RANDOM) or one is best_classic
        if ribbons and ribbon:
            axes.fill_between(
                one.curve.steps,
                one.curve.q025,
                one.curve.q975,
                color=one.look.colour,
                alpha=0.13,
                linewidth=0,
            )
        axes.plot(
            one.curve.steps,
            one.curve.mean,
            color=one.look.colour,
            linestyle=one.look.dash,
            linewidth=1.6 if one.look.label == SUBMAX else 1.0,
        )
    last = int(max(one.curve.steps[-1] for one in chosen))
    top = max(float(one.curve.mean.max()) for one in chosen)
    axes.set_ylim(0, 1.12 * top)
    axes.set_xlim(0, last * (1 + LABEL_SHARE))
    axes.set_xticks([0, last // 2, last])
    _label(axes, chosen, last, 1.12 * top)


def _label(axes: Axes, chosen: Sequence[PaperCurve], last: int, top: float) -> None:
    """Write the names of the families at the ends of their curves, without overlaps."""
    ordered = sorted(chosen, key=lambda one: one.curve.mean[-1])
    heights = [float(one.curve.mean[-1]) / top for one in ordered]
    for place in range(1, len(heights)):
        heights[place] = max(heights[place], heights[place - 1] + SMALLEST_GAP)
    # Labels that were pushed above the axis push the ones below them down.
    limit = 0.98
    for place in reversed(range(len(heights))):
        heights[place] = min(heights[place], limit)
        limit = heights[place] - SMALLEST_GAP
    for one, height in zip(ordered, heights, strict=True):
        parameter = one.policy.rsplit("-", 1)[-1] if one.look.label in ("ε-greedy", "TS") else ""
        number = f" {parameter}" if parameter.replace(".", "").isdigit() else ""
        axes.annotate(
            f"{one.look.label}{number}",
            (last, float(one.curve.mean[-1])),
            xytext=(last * 1.03, height * top),
            color=one.look.colour,
            fontsize=6.5,
            va="center",
            annotation_clip=False,
        )


def paired_figure(rewards: Mapping[str, Floats], policies: Sequence[str]) -> Figure:
    """Draw the final reward minus that of random choice, paired by replica, ± 2 standard errors.

    ``rewards`` has the final reward of every replica, ``[R]``, by the name of the policy.
    """
    rows = []
    for name in policies:
        if name != RANDOM:
            difference = rewards[name] - rewards[RANDOM]
            rows.append((name, float(difference.mean()), 2 * standard_error(difference)))
    rows.sort(key=lambda row: row[1])
    with figure_style():
        figure = Figure(figsize=(5.4, 0.6 + 0.26 * len(rows)))
        figure.set_layout_engine("constrained")
        axes = figure.subplots()
        for place, (name, mean, error) in enumerate(rows):
            look = method_of(name)
            colour = "#555555" if look is None else look.colour
            axes.errorbar(mean, place, xerr=error, fmt="o", color=colour, markersize=4, capsize=2)
        axes.axvline(0, color="#000000", linestyle=":", linewidth=1)
        axes.set_yticks(np.arange(len(rows)), [row[0] for row in rows])
        axes.set_xlabel("accumulated reward minus that of random choice, ± 2 s.e.")
    return figure


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
    batches = specification.get("delay", {}).get("kind") == "batched-rewards"
    every = configurations_in(directory)
    varying = varying_labels(every)
    titles = [_title(panel, "N_b" if batches else "delay", varying) for panel in wanted.panels]
    if wanted.kind == "paper":
        titles = _short_titles(directory, wanted.panels)
        few = len(lines) <= MOST_COLUMNS
        figure = paper_figure(lines, titles, measure, 3 if few else MOST_COLUMNS)
        return saved(figure, directory / "figures", wanted.name)
    scale = axis_label(measure, specification["replicas"], max(map(len, lines)))
    if len(lines) == 1:
        shown = [specification.get("title", ""), titles[0] if len(every) > 1 else ""]
        figure = panel_figure(lines[0], scale, "\n".join(filter(None, shown)) or titles[0])
    else:
        figure = _grid(lines, titles, wanted.columns, scale, specification.get("title", ""))
    return saved(figure, directory / "figures", wanted.name)


def _grid(
    lines: Sequence[Sequence[PanelCurve]],
    titles: Sequence[str],
    columns: int,
    scale: str,
    heading: str,
) -> Figure:
    rows, width = -(-len(lines) // columns), 3.4 * columns
    top = 0.55 if heading else 0.3
    names = list(dict.fromkeys(line.name for panel in lines for line in panel))
    legend_columns = _legend_columns(names, width)
    legend = LEGEND_MARGIN_INCHES + LEGEND_ROW_INCHES * -(-len(names) // legend_columns)
    height = 2.4 * rows + legend + top - 0.3
    with figure_style():
        figure = Figure(figsize=(width, height))
        grid = figure.subplots(rows, columns, squeeze=False)
        figure.subplots_adjust(
            left=0.75 / width,
            right=1 - 0.15 / width,
            top=1 - top / height,
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
            axes.set_xlabel("decisions")
        handles = {
            label: handle
            for axes in grid.flat
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=legend_columns)
        if heading:
            figure.suptitle(heading, fontsize=10, y=1 - 0.08 / height, va="top")
    return figure


def _legend_columns(names: Sequence[str], width: float) -> int:
    """The number of columns of a legend with these names, for a figure of this width."""
    return max(1, min(5, len(names), int(width / legend_width(names))))


def _short_titles(directory: Path, panels: Sequence[Labels]) -> list[str]:
    """Titles with the labels in which the panels differ, and the mean reward of random choice."""
    varying = varying_labels(panels)
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
    shown = [key for key in varying or panel if panel[key] is not None]
    return ", ".join(f"{key} = {_short(panel[key])}" for key in shown)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) and abs(value) >= 1e6 else str(value)
