"""The figures of the paper: its families of methods, the illustration, and estimates from logs."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from submax.simulation.compare import t_test
from submax.simulation.experiment import Labels
from submax.simulation.figures import (
    MOST_COLUMNS,
    Figure,
    Look,
    PanelCurve,
    SweepFigure,
    draw_sweep_figure,
    figure_style,
    looks_of,
    panel_curves,
    saved,
    sweep_figures,
)
from submax.simulation.results import (
    CURVE_TABLE,
    ESTIMATES,
    FINAL_TABLE,
    ResultTable,
    configurations_in,
    read_csv,
    read_manifest,
    varying_labels,
)

RANDOM, SUBMAX, DEFAULT = "random", "SubMax", "rcp-adaptive"
FAMILIES = {
    RANDOM: r"random",
    "ε-greedy": r"(neural-|climbing-)?epsilon-greedy-.*",
    "UCB1": r"ucb1",
    "TS": r"thompson-1-\d+|(climbing-)?dropout-thompson",
    "optimistic": r"rcp-optimistic",
    "optimized": r"rcp-optimized",
    SUBMAX: r"rcp-submax",
    "default": DEFAULT,
}
"""The names of the policies of each family of the paper, as a regular expression."""
CLASSIC = ("ε-greedy", "UCB1", "TS")
BASELINES = (DEFAULT, "fourier-thompson", RANDOM)
"""Which policy the others are compared with, the first one that was run."""
SYMBOLS = {"arms": "K", "delay": "N_b", "shift": "s", "beta": "\\beta"}
"""The letters of the paper for the labels of a configuration."""
PANEL_INCHES = (2.9, 2.2)
"""Width and height of a panel; three panels beside each other are as wide as a page."""
SINGLE_PANEL_INCHES = (4.6, 3.2)
"""Width and height of the panel of a figure with one panel."""
PANEL_COLUMNS = 3
"""Panels beside each other."""
NEAR_FACTOR = 2.0
"""The closer look has the families whose regret is at most this multiple of the lowest."""
LABEL_SHARE = 0.28
"""The part of a panel's width that the direct labels take."""
MOST_LETTERS = 26
"""More panels than this have no letters."""
SMALLEST_GAP = 0.065
"""The least distance between two labels, as a share of the axis."""


def figures_of(directory: Path) -> list[SweepFigure]:
    """The figures of a sweep; those of sections of the paper also with its methods only."""
    specification = read_manifest(directory)["specification"]
    figures = sweep_figures(directory)
    measure = specification["measure"]
    shown = [one for one in figures if one.measure == measure]
    chosen = [one for one in shown if len(one.panels) > 1] or shown
    every = configurations_in(directory)
    finals = ResultTable.read(directory, FINAL_TABLE)
    run = (set(finals.where(one).by_policy()) for one in every)
    if len(every) <= MOST_COLUMNS and set.intersection(*run):
        figures.append(SweepFigure("paired", every, PANEL_COLUMNS, measure, "paired"))
    if specification["name"] == "rates":
        figures.append(chosen[-1]._replace(name="growth", kind="growth"))
    if not specification["statements"].startswith("section"):
        return figures
    paper = [one._replace(name=f"paper-{one.name}", kind="paper") for one in chosen]
    if specification["statements"] == "section 4.1":
        # The text of the paper has N_b = 100 here, the caption of its figure 500.
        for arms in [one for one in paper if one.name == "paper-varying-arms"]:
            panels = [{**panel, "delay": 500} for panel in arms.panels]
            if all(panel in every for panel in panels):
                paper.append(arms._replace(name="paper-varying-arms-500", panels=panels))
    return [*figures, *paper]


def draw_figure(directory: Path, wanted: SweepFigure, policies: Sequence[str] = ()) -> list[Path]:
    """Draw a figure of `figures_of` beside the results, of all policies or only of some."""
    if wanted.kind == "all":
        return draw_sweep_figure(directory, wanted, policies)
    if wanted.kind == "paired":
        figure = _paired_figure(directory, wanted, policies)
    elif wanted.kind == "growth":
        figure = _growth_figure(ResultTable.read(directory, CURVE_TABLE), wanted.panels)
    else:
        table = ResultTable.read(directory, CURVE_TABLE)
        lines = [panel_curves(table, panel, wanted.measure, policies) for panel in wanted.panels]
        titles = _titles(table, wanted.panels)
        figure = _paper_figure(lines, titles, wanted.measure)
    return saved(figure, directory / "figures", wanted.name)


def _panels(
    count: int, columns: int, width: float, height: float, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels of so many inches; those of the last row may be fewer."""
    rows = -(-count // columns)
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **options)
    for axes in grid.flat[count:]:
        axes.set_axis_off()
    return figure, list(grid.flat[:count])


class PaperCurve(NamedTuple):
    """The curve of a family: its best member in this panel."""

    family: str
    look: Look
    curve: PanelCurve

    @property
    def last(self) -> float:
        return float(self.curve.mean[-1])


def _best_of_families(curves: Iterable[PanelCurve], measure: str) -> list[PaperCurve]:
    """Return the curve of each family's best member, by its last mean."""
    sign = 1.0 if measure == "regret" else -1.0
    best: dict[str, PanelCurve] = {}
    named = {curve.name: curve for curve in curves}
    if "dropout-thompson" in named:
        # With contexts this one only shows what can be had without them.
        named.pop("thompson-1-1", None)
    for curve in sorted(named.values(), key=lambda one: sign * one.mean[-1]):
        for family, pattern in FAMILIES.items():
            if re.fullmatch(pattern, curve.name):
                best.setdefault(family, curve)
    return [
        PaperCurve(family, looks_of([best[family].name])[0], best[family])
        for family in FAMILIES
        if family in best
    ]


def _paper_figure(
    panels: Sequence[Sequence[PanelCurve]], titles: Sequence[str], measure: str
) -> Figure:
    """Draw lettered panels, each above a closer look at the families with the least regret.

    Many panels have no closer look.
    """
    columns = min(PANEL_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    high = 2 if measure == "regret" and len(panels) <= MOST_COLUMNS else 1
    width, height = PANEL_INCHES if len(panels) > 1 else SINGLE_PANEL_INCHES
    with figure_style():
        size = (width * columns, height * rows * high)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows * high, columns, squeeze=False)
        for axes in grid.flat:
            axes.set_visible(False)
        for number, (curves, title) in enumerate(zip(panels, titles, strict=True)):
            row, column = divmod(number, columns)
            chosen = _best_of_families(curves, measure)
            axes = grid[row * high, column]
            letter = f"({chr(ord('a') + number)}) " if 1 < len(panels) <= MOST_LETTERS else ""
            if chosen:
                _draw_families(axes, chosen, letter + title, measure)
            if chosen and high == 2:
                others = [one for one in chosen if one.family != RANDOM] or chosen
                limit = NEAR_FACTOR * min(one.last for one in others)
                near = [one for one in others if one.last <= limit]
                _draw_families(grid[2 * row + 1, column], near, "", measure, ribbons=False)
            if column == 0:
                axes.set_ylabel(f"accumulated {measure}")
        for axes in grid[-1]:
            axes.set_xlabel("decisions")
    return figure


def _draw_families(
    axes: Axes, chosen: Sequence[PaperCurve], title: str, measure: str, *, ribbons: bool = True
) -> None:
    axes.set_visible(True)
    axes.set_title(title, loc="left")
    sign = 1.0 if measure == "regret" else -1.0
    classics = [one for one in chosen if one.family in CLASSIC]
    best_classic = min(classics, key=lambda one: sign * one.last, default=None)
    for one in chosen:
        curve, colour = one.curve, one.look.colour
        if ribbons and (one.family in (SUBMAX, RANDOM) or one is best_classic):
            axes.fill_between(
                curve.steps, curve.q025, curve.q975, color=colour, alpha=0.13, linewidth=0
            )
        width = 1.6 if one.family == SUBMAX else 1.0
        axes.plot(curve.steps, curve.mean, color=colour, linestyle=one.look.dash, linewidth=width)
    last = int(max(one.curve.steps[-1] for one in chosen))
    top = 1.12 * max(float(one.curve.mean.max()) for one in chosen)
    axes.set_ylim(0, top)
    axes.set_xlim(0, last * (1 + LABEL_SHARE))
    axes.set_xticks([0, last // 2, last])
    _label(axes, chosen, last, top)


def _label(axes: Axes, chosen: Sequence[PaperCurve], last: int, top: float) -> None:
    """Write the names of the families at the ends of their curves, without overlaps."""
    ordered = sorted(chosen, key=lambda one: one.last)
    heights = [one.last / top for one in ordered]
    for number in range(1, len(heights)):
        heights[number] = max(heights[number], heights[number - 1] + SMALLEST_GAP)
    # Labels that were pushed above the axis push the ones below them down.
    limit = 0.98
    for number in reversed(range(len(heights))):
        heights[number] = min(heights[number], limit)
        limit = heights[number] - SMALLEST_GAP
    for one, height in zip(ordered, heights, strict=True):
        parameter = one.curve.name.rpartition("-")[2] if one.family in CLASSIC else ""
        number_of = f" {parameter}" if parameter.replace(".", "").isdigit() else ""
        axes.annotate(
            f"{one.family}{number_of}",
            (last, one.last),
            xytext=(last * 1.03, height * top),
            color=one.look.colour,
            fontsize=6.5,
            va="center",
            annotation_clip=False,
        )


def _titles(table: ResultTable, panels: Sequence[Labels]) -> list[str]:
    """Titles with the labels in which the panels differ, and the mean reward of random choice."""
    varying = varying_labels(panels)
    titles = []
    for panel in panels:
        values = ", ".join(f"${SYMBOLS.get(key, key)}={panel[key]}$" for key in varying)
        random = [one for one in panel_curves(table, panel, "reward") if one.name == RANDOM]
        if random and len(panels) <= MOST_COLUMNS:
            mean = f"$E[\\bar{{R}}]={random[0].mean[-1] / random[0].steps[-1]:.3g}$"
            titles.append(f"{values} ({mean})" if values else mean)
        else:
            titles.append(values)
    return titles


def _paired_figure(directory: Path, wanted: SweepFigure, policies: Sequence[str]) -> Figure:
    """Draw final values minus those of the default, paired by replica, with 95 % intervals by t.

    Where the default was not run, they are compared with the next of `BASELINES`, or with the first
    policy. Random choice is not drawn: it is far away.
    """
    table, measure = ResultTable.read(directory, FINAL_TABLE), wanted.measure
    found = [
        {name: rows[measure] for name, rows in table.where(panel).by_policy().items()}
        for panel in wanted.panels
    ]
    # A run that was stopped has policies that are not in every panel.
    run = [name for name in found[0] if all(name in values for values in found)]
    names = [name for name in run if not policies or name in (*BASELINES, *policies)]
    baseline = next((name for name in BASELINES if name in names), (names or run)[0])
    names = [name for name in names if name not in (baseline, RANDOM)]
    scales = [max(abs(values[baseline].mean()), 1e-9) for values in found]

    def ratio(name: str) -> float:
        """The mean over panels of the value over that of the baseline."""
        return sum(one[name].mean() / scale for one, scale in zip(found, scales, strict=True))

    order = sorted(names, key=ratio, reverse=measure == "regret")
    columns = 2 if len(found) == 4 else min(PANEL_COLUMNS, len(found))
    varying, width = varying_labels(wanted.panels), max(1.7 / columns + 2.4, 5.4 / columns)
    with figure_style():
        height = 0.7 + 0.17 * len(order)
        figure, grid = _panels(len(found), columns, width, height, sharey=True)
        for axes, values, panel in zip(grid, found, wanted.panels, strict=True):
            for height, name in enumerate(order):
                one = t_test(values[name] - values[baseline])
                reach = one.high - one.mean
                axes.errorbar(
                    one.mean,
                    height,
                    xerr=reach if np.isfinite(reach) else None,
                    fmt="o",
                    color=looks_of([name])[0].colour,
                    markersize=3.5,
                    capsize=2,
                )
            axes.axvline(0, color="#000000", linestyle=":", linewidth=1)
            axes.set_title(", ".join(f"{key} {panel[key]}" for key in varying))
            axes.set_yticks(np.arange(len(order)), order)
            axes.set_ylim(-0.6, len(order) - 0.4)
        of_baseline = "random choice" if baseline == RANDOM else baseline
        figure.supxlabel(f"accumulated {measure} minus that of {of_baseline}, 95 % interval")
    return figure


def _growth_figure(table: ResultTable, panels: Sequence[Labels]) -> Figure:
    """Draw regret on logarithmic axes, with a line of the slope that theory gives for optimistic.

    Optimistic with counts draws arm a with a probability that follows its rewards, so with two arms
    of values p₁ > p₂ the share of arm 2 falls as t^(p₂/p₁ − 1), and the regret grows as t^(p₂/p₁).
    """
    with figure_style():
        width, height = PANEL_INCHES
        figure, grid = _panels(len(panels), len(panels), width, height * 1.2)
        for axes, panel in zip(grid, panels, strict=True):
            best, second = (float(one) for one in str(panel["means"]).split("x"))
            curves = panel_curves(table, panel, "regret")
            for curve, look in zip(curves, looks_of([one.name for one in curves]), strict=True):
                line: dict[str, Any] = {
                    "color": look.colour,
                    "linestyle": look.dash,
                    "label": curve.name,
                }
                axes.plot(curve.steps, curve.mean, linewidth=1.2, **line)
                if curve.name == "rcp-optimistic":
                    theory = curve.mean[-1] * (curve.steps / curve.steps[-1]) ** (second / best)
                    axes.plot(
                        curve.steps, theory, color="#808080", linewidth=0.8, label="t^(p₂/p₁)"
                    )
            axes.set(xscale="log", yscale="log", xlabel="decisions")
            axes.set_title(f"p₁ = {best:g}, p₂ = {second:g}")
        grid[0].set_ylabel("accumulated regret, mean")
        handles, labels = grid[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


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
    with figure_style():
        figure, grid = _panels(len(policies), min(PANEL_COLUMNS, len(policies)), 2.8, 2.2)
        for axes, (name, rows) in zip(grid, policies.items(), strict=True):
            probability, value = rows["probability"], rows["value"]
            heights, label = (value, "value") if name == RANDOM else (probability, "probability")
            actions = np.arange(1, len(value) + 1)
            axes.bar(actions, heights, color="#4878a8", edgecolor="black", linewidth=0.4)
            axes.axvline(int(np.argmax(value)) + 1, color="red", linewidth=1.2, linestyle="--")
            expected = float(np.sum(probability * value))
            title = f"{PANEL_TITLES.get(name, name)} ({expected:.3g})"
            axes.set(title=title, xlabel="action", ylabel=label)
            axes.set_xticks(actions if len(actions) <= 20 else actions[:: len(actions) // 10])
            axes.grid(visible=False)
    return saved(figure, directory / "figures", "illustration")


ERROR_QUANTILES = (0.1, 0.5, 0.9)
"""The quantiles of the errors over replicas that are drawn: lower end, point and upper end."""


def draw_offline(directory: Path) -> list[Path]:
    """Draw one panel for each configuration: the errors of every estimator over the replicas."""
    rows = read_csv(directory / ESTIMATES)
    names = list(rows[0])
    labels = names[: names.index("policy")]
    varying = [name for name in labels if len({one[name] for one in rows}) > 1]
    groups: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault(", ".join(row[name] for name in varying) or "all", []).append(row)
    with figure_style():
        figure, grid = _panels(len(groups), 2, 4.2, 3.1)
        for axes, (name, group) in zip(grid, groups.items(), strict=True):
            _draw_errors(axes, group)
            axes.set_title(name)
        handles, texts = grid[0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside lower center", ncols=3)
    return saved(figure, directory / "figures", "offline")


def _draw_errors(axes: Axes, rows: list[dict[str, str]]) -> None:
    """Draw estimate − truth of every estimator and policy: three quantiles over the replicas."""
    errors: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        error = float(row["value"]) - float(row["truth"])
        errors.setdefault((row["policy"], row["estimator"]), []).append(error)
    policies, estimators = (list(dict.fromkeys(one)) for one in zip(*errors, strict=True))
    for position, (policy, look) in enumerate(zip(policies, looks_of(policies), strict=True)):
        shift = (position - (len(policies) - 1) / 2) * 0.7 / len(policies)
        ends = [np.quantile(errors[policy, one], ERROR_QUANTILES) for one in estimators]
        low, middle, high = np.transpose(ends)
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
    axes.set_ylabel("estimate − truth")
    axes.set_xticks(range(len(estimators)), estimators, rotation=35, ha="right")
