"""The figures of a sweep: single panels, rows in which one value varies, and all panels."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from submax.simulation.figures.comparison import paired_figure
from submax.simulation.figures.panel import (
    MOST_RIBBONS,
    PanelCurve,
    axis_label,
    draw_panel,
    legend_width,
    panel_curves,
    panel_figure,
)
from submax.simulation.figures.plan import (
    CLASSIC,
    MOST_COLUMNS,
    RANDOM,
    SUBMAX,
    Labels,
    MethodLook,
    SweepFigure,
    configurations_in,
    final_rewards,
    method_of,
    specification_in,
    varying_labels,
)
from submax.simulation.figures.style import Figure, figure_style, saved

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
    lines = [
        [
            one
            for one in panel_curves(directory, panel, measure)
            if one.name in policies or not policies
        ]
        for panel in wanted.panels
    ]
    batches = specification.get("delay", {}).get("kind") == "batched-rewards"
    every = configurations_in(directory)
    varying = varying_labels(every)
    titles = [_title(panel, "N_b" if batches else "delay", varying) for panel in wanted.panels]
    if wanted.kind == "paper":
        titles = _short_titles(directory, wanted.panels)
        few = len(lines) <= MOST_COLUMNS
        figure = paper_figure(lines, titles, measure, 3 if few else MOST_COLUMNS)
        return saved(figure, directory / "figures", wanted.name)
    ribbon = "range" if max(map(len, lines)) <= MOST_RIBBONS else "none"
    scale = axis_label(measure, ribbon, specification["replicas"])
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
    curves = {one.name: one for one in panel_curves(directory, panel, "reward")}
    if RANDOM not in curves:
        return ""
    mean = curves[RANDOM].mean[-1] / curves[RANDOM].steps[-1]
    return f"$E[\\bar{{R}}]={mean:.3g}$"


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
