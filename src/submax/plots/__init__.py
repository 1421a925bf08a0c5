"""Figures of simulated traces and of result files; drawing runs no simulation.

Drawing needs matplotlib, ``pip install "submax[plots]"``.
"""

import importlib
from typing import TYPE_CHECKING, Any

from submax.core.running.extras import require_extra

if TYPE_CHECKING:
    from submax.plots.forest_figure import draw_forest as draw_forest
    from submax.plots.illustration_figure import draw_illustration as draw_illustration
    from submax.plots.offline_figure import draw_offline as draw_offline
    from submax.plots.panel import curves as curves
    from submax.plots.studies.rank_figure import (
        critical_difference_figure as critical_difference_figure,
    )
    from submax.plots.studies.study_drawing import study_figure as study_figure
    from submax.plots.studies.study_style import StudyStyle as StudyStyle
    from submax.plots.sweep_drawing import draw_sweep_figure as draw_sweep_figure
    from submax.plots.sweep_plan import SweepFigure as SweepFigure
    from submax.plots.sweep_plan import sweep_figures as sweep_figures

_HOME = {
    "StudyStyle": "submax.plots.studies.study_style",
    "SweepFigure": "submax.plots.sweep_plan",
    "critical_difference_figure": "submax.plots.studies.rank_figure",
    "curves": "submax.plots.panel",
    "draw_forest": "submax.plots.forest_figure",
    "draw_illustration": "submax.plots.illustration_figure",
    "draw_offline": "submax.plots.offline_figure",
    "draw_sweep_figure": "submax.plots.sweep_drawing",
    "study_figure": "submax.plots.studies.study_drawing",
    "sweep_figures": "submax.plots.sweep_plan",
}
"""The module of each public name; the module is imported when the name is first used."""

_PLANS = ("StudyStyle", "SweepFigure", "sweep_figures")
"""Names that describe figures and draw nothing, so that they need no matplotlib."""

__all__ = [
    "StudyStyle",
    "SweepFigure",
    "critical_difference_figure",
    "curves",
    "draw_forest",
    "draw_illustration",
    "draw_offline",
    "draw_sweep_figure",
    "study_figure",
    "sweep_figures",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        if name not in _PLANS:
            require_extra("plots", f"submax.plots.{name}", "matplotlib")
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'submax.plots' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
