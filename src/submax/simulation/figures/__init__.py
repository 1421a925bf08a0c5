"""Figures of traces and of result folders; drawing runs no simulation.

Drawing needs matplotlib, ``pip install "submax[plots]"``.
"""

import importlib
from typing import TYPE_CHECKING, Any

from submax.core.optional import require_extra

if TYPE_CHECKING:
    from submax.simulation.figures.forest import draw_forest as draw_forest
    from submax.simulation.figures.plan import SweepFigure as SweepFigure
    from submax.simulation.figures.plan import sweep_figures as sweep_figures
    from submax.simulation.figures.study import StudyStyle as StudyStyle
    from submax.simulation.figures.study import (
        critical_difference_figure as critical_difference_figure,
    )
    from submax.simulation.figures.study import study_figure as study_figure
    from submax.simulation.figures.sweep import curves as curves
    from submax.simulation.figures.sweep import draw_sweep_figure as draw_sweep_figure

_HOME = {
    "StudyStyle": "submax.simulation.figures.study",
    "SweepFigure": "submax.simulation.figures.plan",
    "critical_difference_figure": "submax.simulation.figures.study",
    "curves": "submax.simulation.figures.sweep",
    "draw_forest": "submax.simulation.figures.forest",
    "draw_sweep_figure": "submax.simulation.figures.sweep",
    "study_figure": "submax.simulation.figures.study",
    "sweep_figures": "submax.simulation.figures.plan",
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
    "draw_sweep_figure",
    "study_figure",
    "sweep_figures",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        if name not in _PLANS:
            require_extra("plots", f"{__name__}.{name}", "matplotlib")
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
