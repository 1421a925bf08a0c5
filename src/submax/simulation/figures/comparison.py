"""Figures that compare policies: estimates from logs, mean ranks, and paired rewards."""

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from submax.core.arrays import Floats
from submax.core.checks import positive
from submax.core.numerics import standard_error
from submax.simulation.figures.plan import RANDOM, method_of, read_estimates
from submax.simulation.figures.style import Figure, figure_style, saved

COLOURS = {
    "ips": "#a00000",
    "snips": "#c2266b",
    "clipped": "#e8861e",
    "dm": "#7f7f7f",
    "dr": "#2f6fd6",
    "switch-dr": "#123f8a",
    "dr-shrinkage": "#008b8b",
    "replay": "#2e9e4f",
    "pseudo-inverse": "#7b3fa0",
    "mips": "#8a6d3b",
    "sndr": "#5a8fe0",
    "per-decision": "#3d3d3d",
    "trajectory": "#b0509a",
}
"""The colours of estimators with short names, the same in every figure."""
OTHER_COLOURS = ("#8c564b", "#b8a000", "#d98cb3", "#5f6b1f", "#6fb7e9")
"""The colours of estimators that were given as a table with parameters, in turn."""
ROW_INCHES = 0.2
"""The height of one estimate in the figure, in inches."""


def draw_forest(directory: Path, policies: Sequence[str] = ()) -> list[Path]:
    """Draw the estimates of an evaluation as PNG and PDF files in their directory.

    If ``policies`` are given, only these are drawn. The recommended estimate of each policy is a
    diamond, the others are circles. A hollow mark is an estimate with a warning. The dashed line is
    the mean reward of the log.
    """
    logging, *others = read_estimates(directory)
    others = [row for row in others if not policies or row["policy"] in policies]
    with figure_style():
        height = ROW_INCHES * (len(others) + 1.5 * len({row["policy"] for row in others}) + 4)
        figure = Figure(figsize=(7.0, max(height, 2.0)), layout="constrained")
        axes = figure.subplots()
        _draw_logging(axes, logging)
        _draw_policies(axes, others)
        axes.set_xlabel("expected reward of a decision")
        figure.legend(loc="outside lower center", ncols=2)
        axes.grid(visible=False, axis="y")
    return saved(figure, directory, "forest")


def _draw_logging(axes: Axes, row: dict[str, str]) -> None:
    low, high = float(row["low"]), float(row["high"])
    if math.isfinite(high - low):
        axes.axvspan(low, high, color="black", alpha=0.08, linewidth=0)
    label = f"{row['policy']}, as logged"
    axes.axvline(float(row["value"]), color="black", linestyle="--", linewidth=1, label=label)


def colours_of(names: Sequence[str]) -> dict[str, str]:
    """The colour of each estimator; that of a short name does not depend on the other names."""
    others = [name for name in dict.fromkeys(names) if name not in COLOURS]
    return {**COLOURS, **dict(zip(others, cycle(OTHER_COLOURS), strict=False))}


def _draw_policies(axes: Axes, rows: list[dict[str, str]]) -> None:
    height, policy = 0.0, None
    colours = colours_of([row["estimator"] for row in rows])
    ticks: list[tuple[float, str, bool]] = []
    for row in rows:
        if row["policy"] != policy:
            policy = row["policy"]
            height -= 1.5
            ticks.append((height, policy, True))
        height -= 1
        _draw_estimate(axes, height, row, colours[row["estimator"]])
        ticks.append((height, row["estimator"], False))
    axes.set_yticks([tick[0] for tick in ticks], [tick[1] for tick in ticks])
    axes.tick_params(axis="y", length=0)
    for label, (_, _, heading) in zip(axes.get_yticklabels(), ticks, strict=True):
        label.set_fontweight("bold" if heading else "normal")
        # A policy's name can contain a $, which matplotlib would read as mathematics.
        label.set_parse_math(False)
    axes.set_ylim(height - 1, -0.5)
    if any(row["warnings"] for row in rows):
        axes.plot([], [], "o", color="#555555", markerfacecolor="white", label="with a warning")
    if any(row.get("recommended") == "True" for row in rows):
        axes.plot([], [], "D", color="#555555", markersize=4, label="recommended", linestyle="none")


def _draw_estimate(axes: Axes, height: float, row: dict[str, str], colour: str) -> None:
    has_warning = bool(row["warnings"])
    value, low, high = (float(row[key]) for key in ("value", "low", "high"))
    axes.plot([low, high], [height, height], color=colour, alpha=0.4 if has_warning else 1.0)
    face = "white" if has_warning else colour
    # Files of earlier versions do not say which estimate is recommended.
    sign = "D" if row.get("recommended") == "True" else "o"
    axes.plot([value], [height], sign, color=colour, markerfacecolor=face, markersize=4)


NAME_INCHES = 0.2
"""The height of the name of a policy, in inches."""


def critical_difference_figure(
    ranks: dict[str, float],
    critical_difference: float,
    groups: list[list[str]],
    width: float = 3.3,
) -> Figure:
    """Draw mean ranks on a line, the best on the left; a bar joins policies that do not differ.

    The arguments are the fields of `MeanRanks`, which ``submax.simulation.compare``
    computes, and its ``groups()``.
    """
    positive("width", width)
    names = sorted(ranks, key=ranks.__getitem__)
    rows, bars = (len(names) + 1) // 2, len(groups)
    height = NAME_INCHES * (rows + bars + 3)
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
