"""Figures of traces and of result folders; drawing runs no simulation.

Drawing needs matplotlib, ``pip install "submax[plots]"``.
"""

import importlib
from typing import TYPE_CHECKING, Any

from submax.core.optional import require_extra

if TYPE_CHECKING:
    from submax.simulation.figures.comparison import (
        critical_difference_figure as critical_difference_figure,
    )
    from submax.simulation.figures.comparison import draw_forest as draw_forest
    from submax.simulation.figures.panel import COLUMN_INCHES as COLUMN_INCHES
    from submax.simulation.figures.panel import curves as curves
    from submax.simulation.figures.plan import SweepFigure as SweepFigure
    from submax.simulation.figures.plan import sweep_figures as sweep_figures
    from submax.simulation.figures.sweep import draw_sweep_figure as draw_sweep_figure

_HOME = {
    "COLUMN_INCHES": "submax.simulation.figures.panel",
    "SweepFigure": "submax.simulation.figures.plan",
    "critical_difference_figure": "submax.simulation.figures.comparison",
    "curves": "submax.simulation.figures.panel",
    "draw_forest": "submax.simulation.figures.comparison",
    "draw_sweep_figure": "submax.simulation.figures.sweep",
    "sweep_figures": "submax.simulation.figures.plan",
}
"""The module of each public name; the module is imported when the name is first used."""

_PLANS = ("SweepFigure", "sweep_figures")
"""Names that describe figures and draw nothing, so that they need no matplotlib."""

__all__ = [
    "COLUMN_INCHES",
    "SweepFigure",
    "critical_difference_figure",
    "curves",
    "draw_forest",
    "draw_sweep_figure",
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
