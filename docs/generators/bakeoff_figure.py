"""The figure of the bake-off: ratios to the best peer, and shares earned with rare rewards."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bakeoff_scores import (
    ADAPTIVE,
    DENSE,
    HELD_OUT,
    LINEAR,
    NETWORKS,
    RARE,
    VOWPAL_WABBIT,
    Score,
    Scores,
    best_of,
    ratio,
)
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from submax.simulation.figures import figure_style

ROW_INCHES = 0.24
GAP = 1.6
"""Rows between two groups of tables, with the second group's heading."""
LABEL_ROW = 1.7
"""Rows above the first table at which the labels of its marks stand."""
TICKS = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)


class Mark(NamedTuple):
    """How the scores of one method, or of the best of several, are drawn."""

    label: str
    marker: str
    colour: str
    face: str
    size: float


MARKS = {
    "adaptive": Mark(ADAPTIVE, "D", "#a00000", "#a00000", 6.5),
    "best": Mark("best\npeer", "|", "#000000", "#000000", 11.0),
    "vowpal wabbit": Mark("best of\nVowpal\nWabbit", "s", "#c56a00", "none", 6.0),
    "linear": Mark("best\nlinear", "^", "#123f8a", "none", 6.5),
    "networks": Mark("best\nnetwork", "o", "#555555", "none", 5.5),
}


class Row(NamedTuple):
    """The scores of one table, by the keys of `MARKS`, and the name of the best peer."""

    table: str
    peer: str
    scores: dict[str, Score]


def draw_bakeoff(dense: tuple[Scores, Scores], rare: tuple[Scores, Scores], file: Path) -> None:
    """Draw the scores of submax's policies and of the peers, with dense and with rare rewards."""
    left = [_relative(row) for row in _rows(*dense, DENSE)]
    right = _rows(*rare, RARE)
    left.sort(key=lambda row: row.scores["adaptive"].mean)
    right.sort(key=lambda row: -row.scores["adaptive"].mean)
    groups = [
        ("settings were chosen on these tables", [r for r in left if r.table not in HELD_OUT]),
        ("settings were not chosen on these tables", [r for r in left if r.table in HELD_OUT]),
    ]
    with figure_style():
        height = ROW_INCHES * (max(len(left), len(right)) + 2 * GAP + 6)
        figure = Figure(figsize=(12.0, max(height, 3.0)), layout="constrained")
        first, second = figure.subplots(1, 2, width_ratios=(5, 4))
        _draw_groups(first, [(title, rows) for title, rows in groups if rows], log=True)
        _draw_groups(second, [("", right)] if right else [], log=False)
        first.set_title("The right label pays: lost reward / that of the best peer", loc="left")
        first.set_xlabel(
            "ratio, log scale; left of 1: better than the best peer (bars: ± 2 standard errors)"
        )
        second.set_title("Rare rewards: share earned beyond uniform choice", loc="left")
        second.set_xlabel(
            "share of what can be earned; right is better (bars: ± 2 standard errors)"
        )
        figure.savefig(file)


def _rows(own: Scores, peers: Scores, regime: str) -> list[Row]:
    """The tables that both submax's default and some peers have played."""
    found = []
    for name, scores in own.items():
        known = peers.get(name, {})
        best = {
            "best": best_of(known, regime),
            "vowpal wabbit": best_of(known, regime, VOWPAL_WABBIT),
            "linear": best_of(known, regime, *LINEAR),
            "networks": best_of(scores, regime, *NETWORKS),
        }
        if ADAPTIVE in scores and best["best"] is not None:
            others = {key: one[1] for key, one in best.items() if one is not None}
            found.append(Row(name, best["best"][0], {"adaptive": scores[ADAPTIVE], **others}))
    return found


def _relative(row: Row) -> Row:
    best = row.scores["best"]
    scores = {key: ratio(score, best) for key, score in row.scores.items()}
    # The error of the best peer is in those of the ratios.
    return row._replace(scores={**scores, "best": Score(1.0, math.nan)})


def _draw_groups(axes: Axes, groups: Sequence[tuple[str, list[Row]]], log: bool) -> None:
    """Draw the rows one below the other, each group under its heading."""
    place, ticks = 0.0, []
    for number, (heading, rows) in enumerate(groups):
        place -= GAP if number else 0.0
        # Between the labels' lines and the first row there is no room for the heading.
        height = place + (0.75 if number else LABEL_ROW + 2.2)
        axes.text(
            0.0,
            height,
            heading,
            transform=axes.get_yaxis_transform(),
            style="italic",
            backgroundcolor="white",
        )
        for row in rows:
            _draw_row(axes, place, row)
            _name_peer(axes, place, row.peer)
            ticks.append((place, row.table))
            place -= 1
    axes.set_yticks([tick[0] for tick in ticks], [tick[1] for tick in ticks])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(place + 0.3, LABEL_ROW + 3.2)
    if groups:
        _name_peer(axes, 1.0, "best peer:")
        _scale(axes, [row for _, rows in groups for row in rows], log)
        _label_marks(axes, groups[0][1][0])


def _name_peer(axes: Axes, place: float, name: str) -> None:
    """Write the name of a row's best peer at its right."""
    across = axes.get_yaxis_transform()
    axes.text(1.01, place, name, transform=across, fontsize=6.5, color="#444444", va="center")


def _draw_row(axes: Axes, place: float, row: Row) -> None:
    # The filled mark comes first, so that it hides none of the hollow ones.
    for key, mark in MARKS.items():
        if key not in row.scores:
            continue
        score = row.scores[key]
        if not math.isnan(score.error):
            ends = [score.mean - 2 * score.error, score.mean + 2 * score.error]
            axes.plot(ends, [place, place], color=mark.colour, linewidth=1, alpha=0.6)
        axes.plot(
            [score.mean],
            [place],
            mark.marker,
            color=mark.colour,
            markerfacecolor=mark.face,
            markersize=mark.size,
            markeredgewidth=1.2,
        )


def _scale(axes: Axes, rows: Sequence[Row], log: bool) -> None:
    values = [score.mean for row in rows for score in row.scores.values()]
    if log:
        axes.set_xscale("log")
        axes.set_xlim(min(values) / 1.15, max(values) * 1.15)
        axes.xaxis.set_major_locator(FixedLocator(TICKS))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.axvline(1.0, color="black", linewidth=0.8, zorder=0)
    else:
        axes.set_xlim(min(0.0, *values) - 0.03, 1.0)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")


def _label_marks(axes: Axes, row: Row) -> None:
    """Name the marks of the first row above them; lines lead from each name to its mark."""
    keys = sorted((key for key in MARKS if key in row.scores), key=lambda key: row.scores[key].mean)
    for position, key in enumerate(keys):
        mark = MARKS[key]
        axes.annotate(
            mark.label,
            xy=(row.scores[key].mean, 0.3),
            xytext=((position + 0.5) / len(keys), LABEL_ROW),
            textcoords=axes.get_yaxis_transform(),
            color=mark.colour,
            ha="center",
            va="bottom",
            fontweight="bold" if key == "adaptive" else "normal",
            arrowprops={"arrowstyle": "-", "color": mark.colour, "linewidth": 0.6, "shrinkB": 0},
        )
