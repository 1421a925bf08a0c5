"""The critical-difference diagram: mean ranks, with bars over policies that do not differ."""

from matplotlib.figure import Figure

from submax.core.checks import positive
from submax.plots.studies.study_style import COLUMN_INCHES
from submax.plots.style import figure_style

ROW_INCHES = 0.2
"""The height of the name of a policy, in inches."""


def critical_difference_figure(
    ranks: dict[str, float],
    critical_difference: float,
    groups: list[list[str]],
    width: float = COLUMN_INCHES,
) -> Figure:
    """Draw mean ranks on a line, the best on the left; a bar joins policies that do not differ.

    The arguments are the fields of `MeanRanks`, which ``submax.experiments.comparing.mean_ranks``
    computes, and its ``groups()``.
    """
    positive("width", width)
    names = sorted(ranks, key=ranks.__getitem__)
    rows, bars = (len(names) + 1) // 2, len(groups)
    height = ROW_INCHES * (rows + bars + 3)
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
