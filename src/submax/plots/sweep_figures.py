"""The figures of a sweep: single panels, rows in which one value varies, and all panels."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq
from matplotlib.figure import Figure

from submax.core.arrays import Floats
from submax.plots.panel import PanelCurve, axis_label, draw_panel, legend_width, panel_figure
from submax.plots.paper_figures import paired_figure, paper_figure
from submax.plots.paper_methods import RANDOM
from submax.plots.saved import saved
from submax.plots.style import figure_style

Labels = dict[str, Any]
LEGEND_MARGIN_INCHES, LEGEND_ROW_INCHES = 0.2, 0.2
"""The height of a grid's legend, in inches: a margin, and the height of each row."""
MOST_COLUMNS = 9
"""The most panels beside each other; further panels continue in the next row."""


class SweepFigure(NamedTuple):
    """A figure to draw: its name, its configurations in reading order, columns and measure.

    ``kind`` is "all" for all policies, "paper" for the best policy of each family of the paper, and
    "paired" for final rewards minus that of random choice.
    """

    name: str
    panels: list[Labels]
    columns: int
    measure: str = "regret"
    kind: Literal["all", "paper", "paired"] = "all"


def sweep_figures(directory: Path) -> list[SweepFigure]:
    """The figures that can be drawn from the results in a directory."""
    specification = _specification(directory)
    panels = _configurations(directory)
    varying = [key for key in panels[0] if len({panel[key] for panel in panels}) > 1]
    singles = [SweepFigure(_panel_name(panel, varying), [panel], 1) for panel in panels]
    reference = _nearest(panels, specification.get("reference", {}))
    rows = [_row(panels, key, reference) for key in varying]
    figures = [*singles, *[row for row in rows if len(row.panels) > 1]]
    if len(panels) > 1:
        columns = min(len({panel[varying[0]] for panel in panels}), MOST_COLUMNS)
        rest = [key for key in panels[0] if key != varying[0]]
        ordered = sorted(panels, key=lambda panel: [panel[key] for key in (*rest, varying[0])])
        figures.append(SweepFigure("all-configurations", ordered, columns))
    if specification.get("measure", "regret") == "regret":
        return [*figures, *_paper_figures(specification, figures, "regret")]
    paired = SweepFigure("paired-reward", panels[:1], 1, "reward", "paired")
    can_pair = len(panels) == 1 and RANDOM in _final_rewards(directory, panels[0])
    return [
        *_paper_figures(specification, figures, "reward"),
        *([paired] if can_pair else []),
        *(figure._replace(measure="reward") for figure in figures),
        *(figure._replace(name=f"{figure.name}-regret") for figure in figures),
    ]


def _paper_figures(
    specification: dict[str, Any], figures: Sequence[SweepFigure], measure: str
) -> list[SweepFigure]:
    """The figures that are also drawn with the methods of the paper only."""
    if not specification.get("statements", "").startswith("section"):
        return []
    chosen = [one for one in figures if len(one.panels) > 1] or figures
    return [one._replace(name=f"paper-{one.name}", measure=measure, kind="paper") for one in chosen]


def draw_sweep_figure(
    directory: Path, wanted: SweepFigure, policies: Sequence[str] = ()
) -> list[Path]:
    """Draw one figure as PNG and PDF files beside the results.

    If ``policies`` are given, only these are drawn.
    """
    specification = _specification(directory)
    measure = wanted.measure
    if wanted.kind == "paired":
        rewards = _final_rewards(directory, wanted.panels[0])
        figure = paired_figure(
            rewards, [name for name in policies if name in rewards] or list(rewards)
        )
        return saved(figure, directory / "figures", wanted.name)
    lines = [_curves(directory, panel, measure, policies) for panel in wanted.panels]
    batches = specification.get("delay", {}).get("kind") == "batch-flush"
    every = _configurations(directory)
    varying = [key for key in every[0] if len({panel[key] for panel in every}) > 1]
    titles = [_title(panel, "N_b" if batches else "lag", varying) for panel in wanted.panels]
    if wanted.kind == "paper":
        titles = _short_titles(directory, wanted.panels)
        few = len(lines) <= MOST_COLUMNS
        figure = paper_figure(lines, titles, measure, 3 if few else MOST_COLUMNS)
        return saved(figure, directory / "figures", wanted.name)
    scale = axis_label(measure, specification["replicas"], max(map(len, lines)))
    if len(lines) == 1:
        figure = panel_figure(lines[0], scale, titles[0])
    else:
        figure = _grid(lines, titles, wanted.columns, scale)
    return saved(figure, directory / "figures", wanted.name)


def _grid(
    lines: Sequence[Sequence[PanelCurve]], titles: Sequence[str], columns: int, scale: str
) -> Figure:
    rows, width = -(-len(lines) // columns), 3.4 * columns
    names = list(dict.fromkeys(line.name for panel in lines for line in panel))
    legend_columns = _legend_columns(names, width)
    legend = LEGEND_MARGIN_INCHES + LEGEND_ROW_INCHES * -(-len(names) // legend_columns)
    height = 2.4 * rows + legend
    with figure_style():
        figure = Figure(figsize=(width, height))
        grid = figure.subplots(rows, columns, squeeze=False)
        figure.subplots_adjust(
            left=0.75 / width,
            right=1 - 0.15 / width,
            top=1 - 0.3 / height,
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
            axes.set_xlabel("observations")
        handles = {
            label: handle
            for axes in grid.flat
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=legend_columns)
    return figure


def _legend_columns(names: Sequence[str], width: float) -> int:
    """The number of columns of a legend with these names, for a figure of this width."""
    return max(1, min(5, len(names), int(width / legend_width(names))))


def _nearest(panels: Sequence[Labels], reference: Labels) -> Labels:
    """The panel that has the most labels in common with the reference."""
    return max(panels, key=lambda panel: len(panel.items() & reference.items()))


def _row(panels: Sequence[Labels], key: str, reference: Labels) -> SweepFigure:
    fixed = {name: value for name, value in reference.items() if name != key}
    chosen = [panel for panel in panels if fixed.items() <= panel.items()]
    return SweepFigure(f"varying-{key}", chosen, min(max(len(chosen), 1), MOST_COLUMNS))


def _specification(directory: Path) -> dict[str, Any]:
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    specification: dict[str, Any] = manifest["specification"]
    return specification


def _configurations(directory: Path) -> list[Labels]:
    schema = pq.read_schema(directory / "results.parquet").names
    # The columns before the policy are the labels of a configuration.
    labels = schema[: schema.index("policy")]
    table = pq.read_table(directory / "results.parquet", columns=labels)
    found: list[Labels] = table.group_by(labels, use_threads=False).aggregate([]).to_pylist()
    return found


def _short_titles(directory: Path, panels: Sequence[Labels]) -> list[str]:
    """Titles with the labels in which the panels differ, and the mean reward of random choice."""
    varying = [key for key in panels[0] if len({str(panel[key]) for panel in panels}) > 1]
    symbols = {"arms": "K", "delay": "N_b", "shift": "s", "beta": "\\beta"}
    titles = []
    for panel in panels:
        values = ", ".join(f"${symbols.get(key, key)}={panel[key]}$" for key in varying)
        mean = _mean_reward(directory, panel) if len(panels) <= MOST_COLUMNS else ""
        titles.append(f"{values} ({mean})" if values and mean else values or mean)
    return titles


def _final_rewards(directory: Path, panel: Labels) -> dict[str, Floats]:
    """The final reward of every replica by policy, in one configuration."""
    filters = [(key, "=", value) for key, value in panel.items()]
    table = pq.read_table(directory / "finals.parquet", filters=filters)
    return {
        name: table.filter(pc.equal(table["policy"], name))["reward"].to_numpy()
        for name in pc.unique(table["policy"]).to_pylist()
    }


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
    filters = [(key, "=", value) for key, value in panel.items()]
    table = pq.read_table(directory / "results.parquet", filters=filters)
    lines = []
    for name in pc.unique(table["policy"]).to_pylist():
        if policies and name not in policies:
            continue
        rows = table.filter(pc.equal(table["policy"], name))
        columns = ("step", f"{measure}_mean", f"{measure}_q025", f"{measure}_q975")
        lines.append(PanelCurve(name, *(rows[column].to_numpy() for column in columns)))
    return lines


def _title(panel: Labels, delay: str, varying: Sequence[str]) -> str:
    if {"arms", "alpha", "beta", "delay"} == panel.keys():
        prior = f"Beta({panel['alpha']}, {panel['beta']})"
        return f"$K={panel['arms']}$, {prior}, ${delay}={panel['delay']}$"
    if "shift" in panel:
        others = [key for key in varying if key not in ("shift", "delay")]
        more = "".join(f", {key} = {_short(panel[key])}" for key in others)
        return f"$s={panel['shift']}$, ${delay}={panel['delay']}${more}"
    return ", ".join(f"{key} = {_short(panel[key])}" for key in varying or panel)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, (int, float)) and abs(value) >= 1e6 else str(value)


def _panel_name(panel: Labels, varying: Sequence[str]) -> str:
    """Return the name of a panel's file, with the values in which it differs from others."""
    name = "-".join(["panel", *(f"{key}={panel[key]}" for key in varying)])
    # Some systems do not allow these characters in the name of a file.
    return name.replace("/", "_").replace(":", "_")
