"""The figures of a sweep: single panels, rows in which one value varies, and all panels."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq
from matplotlib.figure import Figure

from submax.plots.panel import PanelCurve, axis_label, draw_panel, legend_width, panel_figure
from submax.plots.saved import saved
from submax.plots.style import figure_style

Labels = dict[str, Any]
LEGEND_MARGIN_INCHES, LEGEND_ROW_INCHES = 0.2, 0.2
"""The height of a grid's legend, in inches: a margin, and the height of each row."""
MOST_COLUMNS = 9
"""The most panels beside each other; further panels continue in the next row."""


class SweepFigure(NamedTuple):
    """A figure to draw: its name, its configurations in reading order, columns and measure."""

    name: str
    panels: list[Labels]
    columns: int
    measure: str = "regret"


def sweep_figures(directory: Path) -> list[SweepFigure]:
    """The figures that can be drawn from the results in a directory."""
    specification = _specification(directory)
    panels = _configurations(directory)
    singles = [SweepFigure(f"panel-{_file_name(panel)}", [panel], 1) for panel in panels]
    varying = [key for key in panels[0] if len({panel[key] for panel in panels}) > 1]
    reference = _nearest(panels, specification.get("reference", {}))
    rows = [_row(panels, key, reference) for key in varying]
    figures = [*singles, *[row for row in rows if len(row.panels) > 1]]
    if len(panels) > 1:
        columns = min(len({panel[varying[0]] for panel in panels}), MOST_COLUMNS)
        rest = [key for key in panels[0] if key != varying[0]]
        ordered = sorted(panels, key=lambda panel: [panel[key] for key in (*rest, varying[0])])
        figures.append(SweepFigure("all-configurations", ordered, columns))
    if specification.get("measure", "regret") == "regret":
        return figures
    return [
        *(figure._replace(measure="reward") for figure in figures),
        *(figure._replace(name=f"{figure.name}-regret") for figure in figures),
    ]


def draw_sweep_figure(directory: Path, wanted: SweepFigure) -> list[Path]:
    """Draw one figure as PNG and PDF files beside the results."""
    specification = _specification(directory)
    measure = wanted.measure
    lines = [_curves(directory, panel, measure) for panel in wanted.panels]
    batches = specification.get("delay", {}).get("kind") == "batch-flush"
    every = _configurations(directory)
    varying = [key for key in every[0] if len({panel[key] for panel in every}) > 1]
    titles = [_title(panel, "N_b" if batches else "lag", varying) for panel in wanted.panels]
    scale = axis_label(measure, specification["replicas"])
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


def _curves(directory: Path, panel: Labels, measure: str) -> list[PanelCurve]:
    filters = [(key, "=", value) for key, value in panel.items()]
    table = pq.read_table(directory / "results.parquet", filters=filters)
    lines = []
    for name in pc.unique(table["policy"]).to_pylist():
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


def _file_name(panel: Labels) -> str:
    name = "-".join(f"{key}={value}" for key, value in panel.items())
    # Some systems do not allow these characters in the name of a file.
    return name.replace("/", "_").replace(":", "_")
