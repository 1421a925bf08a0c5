"""The figures of the illustration and of estimates from logs."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from submax.core.arrays import Floats
from submax.simulation.figures.plan import read_estimates
from submax.simulation.figures.style import Figure, figure_style, look_of, saved
from submax.simulation.results import CURVE_TABLE, ResultTable

PANEL_TITLES = {
    "random": "environment",
    "rcp-negative": "0-conditioned policy",
    "rcp-positive": "1-conditioned policy",
    "rcp-optimized": "optimized policy",
    "rcp-optimistic": "optimistic policy",
    "rcp-submax": "SubMax policy",
}


def draw_illustration(directory: Path) -> list[Path]:
    """Draw the first environment of an illustration as PNG and PDF files beside its results.

    Every panel has the probabilities of one policy. The panel of the random policy has the values
    of the actions instead. A dashed line is at the best action.
    """
    policies = ResultTable.read(directory, CURVE_TABLE).by_policy()
    columns = min(3, len(policies))
    lines = -(-len(policies) // columns)
    with figure_style():
        figure = Figure(figsize=(2.8 * columns, 2.2 * lines), layout="constrained")
        grid = figure.subplots(lines, columns, squeeze=False)
        for axes in grid.flat:
            axes.set_axis_off()
        for axes, (name, rows) in zip(grid.flat, policies.items(), strict=False):
            _draw(axes, name, rows["probability"], rows["value"])
    return saved(figure, directory / "figures", "illustration")


def _draw(axes: Axes, name: str, probability: Floats, value: Floats) -> None:
    axes.set_axis_on()
    shows_environment = name == "random"
    heights = value if shows_environment else probability
    actions = np.arange(1, len(value) + 1)
    axes.bar(actions, heights, color="#4878a8", edgecolor="black", linewidth=0.4, width=0.8)
    axes.axvline(int(np.argmax(value)) + 1, color="red", linewidth=1.2, linestyle="--")
    expected = float(np.sum(probability * value))
    axes.set_title(f"{PANEL_TITLES.get(name, name)} ({expected:.3g})")
    axes.set_ylabel("value" if shows_environment else "probability")
    axes.set_xlabel("action")
    axes.set_xticks(actions if len(actions) <= 20 else actions[:: len(actions) // 10])
    axes.grid(visible=False)


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
            _offline_draw(axes, name, group)
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return saved(figure, directory / "figures", "offline")


def _configuration(row: dict[str, str], rows: list[dict[str, str]]) -> str:
    """The values of the labels that vary between rows, as the title of a panel."""
    names = list(row)
    labels = names[: names.index("policy")]
    varying = [name for name in labels if len({one[name] for one in rows}) > 1]
    return ", ".join(row[name] for name in varying) or "all"


def _offline_draw(axes: Axes, name: str, rows: list[dict[str, str]]) -> None:
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
