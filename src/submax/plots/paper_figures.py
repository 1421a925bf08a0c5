"""Figures with the methods of the paper only, to lay beside its figures."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from submax.core.arrays import Floats
from submax.core.numerics.standard_error import standard_error
from submax.plots.panel import PanelCurve
from submax.plots.paper_methods import CLASSIC, RANDOM, SUBMAX, MethodLook, method_of
from submax.plots.style import figure_style

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
            axes.set_xlabel("observations")
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
