"""Write the tables of docs/results/growth.md and its figure from growth.csv there: ``make docs``.

``python docs/generators/growth_page.py FILE`` first replaces growth.csv by FILE, which
benchmarks/live/growth.py wrote.
"""

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from growth_results import FILE, FURTHER, LOG, MEASURES, Growth, Measure, Series
from markdown_tables import table
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from published import RESULTS

from submax.simulation.figures import figure_style

PAGE = Path(__file__).parents[1] / "results" / "growth.md"
FIGURE = RESULTS / "growth.png"
STYLES = {
    ("no context", LOG): ("#555555", "o", "log without context"),
    ("20 numbers", LOG): ("#000000", "s", "log with 20 numbers of context"),
    ("no context", "counting (default)"): ("#a00000", "D", "counting (default), no context"),
    ("20 numbers", "Bayesian features (default)"): ("#123f8a", "^", "default, 20 numbers"),
    ("20 numbers", "linear (linucb)"): ("#c56a00", "v", "linear, 20 numbers"),
    ("20 numbers", "network (softmax)"): ("#1f7a1f", "X", "network, 20 numbers"),
}


def with_tables(text: str) -> str:
    """Return the page with its tables replaced; they are between comments with their names."""
    growth = Growth()
    made = {
        "machine": f"Measured on: {'; '.join(growth.machines)}.",
        "summary": _summary(growth),
        "goals": _table(growth, MEASURES),
        "further": _table(growth, FURTHER),
    }
    for name, part in made.items():
        mark = f"<!-- {name} -->"
        pattern = re.compile(f"{mark}.*?{mark}", re.DOTALL)
        text = pattern.sub(lambda _, mark=mark, part=part: f"{mark}\n\n{part}\n\n{mark}", text)
    return text


def _summary(growth: Growth) -> str:
    """Say for each goal how often it is met, and how much the value changes with the log."""
    rows = []
    for measure in MEASURES:
        every = growth.series(measure)
        values = [value for series in every for value in series.values.values()]
        if not values:
            rows.append((measure.name, measure.unit, measure.goal, "not measured", "", ""))
            continue
        met = sum(bool(measure.meets(value)) for value in values)
        worst = max(values) if measure.at_most else min(values)
        change = max(_change(series) for series in every)
        rows.append(
            (
                measure.name,
                measure.unit,
                measure.goal,
                f"{met} of {len(values)} cells",
                _number(worst),
                f"{change:.1f}",
            )
        )
    head = ("measure", "unit", "goal", "met in", "worst", "largest / smallest along a log")
    return table(head, rows)


def _change(series: Series) -> float:
    return max(series.values.values()) / min(series.values.values())


def _table(growth: Growth, measures: Sequence[Measure]) -> str:
    sizes, goals = growth.sizes, any(measure.goal for measure in measures)
    rows = []
    for measure in measures:
        for series in growth.series(measure):
            cells = [_cell(measure, series.values.get(size)) for size in sizes]
            what = f"{measure.name}, {measure.unit}"
            rows.append((what, _name(series), *cells, *([measure.goal] if goals else [])))
    head = ("measure", "of", *(_size(size) for size in sizes), *(["goal"] if goals else []))
    return table(head, rows)


def _name(series: Series) -> str:
    return f"{series.policy or 'the log'}, {series.log}"


def _cell(measure: Measure, value: float | None) -> str:
    """A number, in bold if it misses the goal."""
    if value is None:
        return ""
    return f"**{_number(value)}**" if measure.meets(value) is False else _number(value)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _size(rows: int) -> str:
    """A number of rows as a power of ten, with its factor if that is not 1."""
    power = len(str(rows)) - 1
    factor = rows / 10**power
    digits = str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}" if factor == 1 else f"{factor:g}·10{digits}"


def draw(growth: Growth, file: Path) -> None:
    """Draw every measure that has a goal by the number of rows, on logarithmic axes."""
    with figure_style():
        figure = Figure(figsize=(11.0, 6.0), layout="constrained")
        panels = figure.subplots(2, 3).flat
        for axes, measure in zip(panels, MEASURES, strict=True):
            _draw_measure(axes, growth, measure)
        handles = {}
        for axes in figure.axes:
            handles.update(dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True)))
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
        figure.savefig(file, metadata={"Software": None})


def _draw_measure(axes: Axes, growth: Growth, measure: Measure) -> None:
    series = growth.series(measure)
    for one in series:
        colour, marker, label = STYLES[one.log, one.policy]
        points = sorted(one.values.items())
        axes.plot(*zip(*points, strict=True), marker=marker, color=colour, label=label, ms=4)
    if measure.limit is not None:
        axes.axhline(measure.limit, color="#777777", linestyle="--", linewidth=1)
        side = "below" if measure.at_most else "above"
        axes.text(
            0.99,
            measure.limit,
            f"goal: {side}",
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="bottom",
            fontsize=7,
            color="#555555",
        )
    axes.set(xscale="log", yscale="log", xlabel="decisions in the log", ylabel=measure.unit)
    axes.set_xlim(growth.sizes[0] / 1.3, growth.sizes[-1] * 1.3)
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_title(measure.name if series else f"{measure.name}: not measured", loc="left")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        shutil.copy(sys.argv[1], FILE)
    if FILE.is_file():
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        draw(Growth(), FIGURE)
