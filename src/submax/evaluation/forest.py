"""The forest plot of an evaluation: every estimate with its interval, policy by policy."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from submax.simulation.results import read_csv

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ESTIMATES = "estimates.csv"
"""The file with all estimates of an evaluation."""
ROW_INCHES = 0.2
"""The height of one estimate in the figure, in inches."""


def draw_forest(directory: Path, policies: Sequence[str] = ()) -> list[Path]:
    """Draw the estimates of an evaluation as PNG and PDF files in their directory.

    If ``policies`` are given, only these are drawn. The recommended estimate of each policy is a
    diamond, the others are circles. A hollow mark is an estimate with a warning. The dashed line is
    the mean reward of the log.
    """
    # Imported here because matplotlib takes its time, and is an extra.
    from submax.simulation.figures import Figure, figure_style, saved

    logging, *others = read_csv(directory / ESTIMATES)
    others = [row for row in others if not policies or row["policy"] in policies]
    with figure_style():
        height = ROW_INCHES * (len(others) + 1.5 * len({row["policy"] for row in others}) + 4)
        figure = Figure(figsize=(7.0, max(height, 2.0)), layout="constrained")
        axes = figure.subplots()
        low, high = float(logging["low"]), float(logging["high"])
        if math.isfinite(high - low):
            axes.axvspan(low, high, color="black", alpha=0.08, linewidth=0)
        label = f"{logging['policy']}, as logged"
        value = float(logging["value"])
        axes.axvline(value, color="black", linestyle="--", linewidth=1, label=label)
        _draw_policies(axes, others)
        axes.set_xlabel("expected reward of a decision")
        figure.legend(loc="outside lower center", ncols=2)
        axes.grid(visible=False, axis="y")
    return saved(figure, directory, "forest")


def _draw_policies(axes: "Axes", rows: list[dict[str, str]]) -> None:
    height, policy = 0.0, None
    names = dict.fromkeys(row["estimator"] for row in rows)
    colours = {name: f"C{place}" for place, name in enumerate(names)}
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
    if any(row["recommended"] == "True" for row in rows):
        axes.plot([], [], "D", color="#555555", markersize=4, label="recommended", linestyle="none")


def _draw_estimate(axes: "Axes", height: float, row: dict[str, str], colour: str) -> None:
    has_warning = bool(row["warnings"])
    value, low, high = (float(row[key]) for key in ("value", "low", "high"))
    axes.plot([low, high], [height, height], color=colour, alpha=0.4 if has_warning else 1.0)
    face = "white" if has_warning else colour
    sign = "D" if row["recommended"] == "True" else "o"
    axes.plot([value], [height], sign, color=colour, markerfacecolor=face, markersize=4)
