"""Figures of simulated traces and of result files; drawing runs no simulation."""

from submax.plots.forest_figure import draw_forest
from submax.plots.illustration_figure import draw_illustration
from submax.plots.offline_figure import draw_offline
from submax.plots.panel import curves
from submax.plots.sweep_figures import SweepFigure, draw_sweep_figure, sweep_figures

__all__ = [
    "SweepFigure",
    "curves",
    "draw_forest",
    "draw_illustration",
    "draw_offline",
    "draw_sweep_figure",
    "sweep_figures",
]
