"""The errors of off-policy estimates in an experiment that knows the true values."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from submax.core.arrays import Floats
from submax.plots.estimates import read_estimates
from submax.plots.saved import saved
from submax.plots.style import figure_style, look_of

COLUMNS = 2
"""Panels beside each other."""
QUANTILES = (0.1, 0.5, 0.9)
"""The quantiles of the errors over replicas that are drawn: lower end, point and upper end."""


def draw_offline(directory: Path) -> list[Path]:
    """Draw one panel for each configuration: the errors of every estimator over the replicas."""
    rows = read_estimates(directory)
    groups: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault(_configuration(row, rows), []).append(row)
    lines = -(-len(groups) // COLUMNS)
    with figure_style():
        figure = Figure(figsize=(4.2 * COLUMNS, 2.9 * lines + 0.5), layout="constrained")
        grid = figure.subplots(lines, COLUMNS, squeeze=False)
        for axes in grid.flat[len(groups) :]:
            axes.set_axis_off()
        for axes, (name, group) in zip(grid.flat, groups.items(), strict=False):
            _draw(axes, name, group)
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return saved(figure, directory / "figures", "offline")


def _configuration(row: dict[str, str], rows: list[dict[str, str]]) -> str:
    """The values of the labels that vary between rows, as the title of a panel."""
    names = list(row)
    labels = names[: names.index("policy")]
    varying = [name for name in labels if len({one[name] for one in rows}) > 1]
    return ", ".join(row[name] for name in varying) or "all"


def _draw(axes: Axes, name: str, rows: list[dict[str, str]]) -> None:
    estimators = list(dict.fromkeys(row["estimator"] for row in rows))
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    for position, policy in enumerate(policies):
        look = look_of(policy, position)
        shift = (position - (len(policies) - 1) / 2) * 0.7 / len(policies)
        low, middle, high = np.transpose(
            [_error_quantiles(rows, policy, estimator) for estimator in estimators]
        )
        axes.errorbar(
            np.arange(len(estimators)) + shift,
            middle,
            [middle - low, high - middle],
            fmt=look.marker or "o",
            color=look.colour,
            markersize=3.5,
            linewidth=1.2,
            label=policy,
        )
    axes.axhline(0.0, color="black", linewidth=0.8, linestyle="--")
    axes.set_title(name)
    axes.set_ylabel("estimate − truth")
    axes.set_xticks(range(len(estimators)), estimators, rotation=35, ha="right")


def _error_quantiles(rows: list[dict[str, str]], policy: str, estimator: str) -> Floats:
    """The 10 %, 50 % and 90 % quantiles of estimate − truth over the replicas."""
    error = [
        float(row["value"]) - float(row["truth"])
        for row in rows
        if (row["policy"], row["estimator"]) == (policy, estimator)
    ]
    found: Floats = np.quantile(error, QUANTILES)
    return found
