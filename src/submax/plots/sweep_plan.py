"""Which figures can be drawn from the results of a sweep; nothing is drawn here."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from submax.plots.paper_methods import RANDOM
from submax.plots.sweep_results import (
    Labels,
    configurations_in,
    final_rewards,
    specification_in,
)

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
    specification = specification_in(directory)
    panels = configurations_in(directory)
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
    can_pair = len(panels) == 1 and RANDOM in final_rewards(directory, panels[0])
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


def _nearest(panels: Sequence[Labels], reference: Labels) -> Labels:
    """The panel that has the most labels in common with the reference."""
    return max(panels, key=lambda panel: len(panel.items() & reference.items()))


def _row(panels: Sequence[Labels], key: str, reference: Labels) -> SweepFigure:
    fixed = {name: value for name, value in reference.items() if name != key}
    chosen = [panel for panel in panels if fixed.items() <= panel.items()]
    return SweepFigure(f"varying-{key}", chosen, min(max(len(chosen), 1), MOST_COLUMNS))


def _panel_name(panel: Labels, varying: Sequence[str]) -> str:
    """Return the name of a panel's file, with the values in which it differs from others."""
    name = "-".join(["panel", *(f"{key}={panel[key]}" for key in varying)])
    # Some systems do not allow these characters in the name of a file.
    return name.replace("/", "_").replace(":", "_")
