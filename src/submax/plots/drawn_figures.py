"""Which figures of a sweep were drawn from the present results."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from submax._version import __version__
from submax.core.running.whole_file import whole_file
from submax.plots.sweep_plan import SweepFigure
from submax.plots.sweep_results import (
    CURVES,
    FINALS,
    Labels,
    configurations_in,
    specification_in,
)
from submax.simulation.running.result_table import ResultTable

NOTE = "drawn.json"
"""The file beside the figures with a digest of what each of them was drawn from."""
TITLES = ("delay", "replicas", "measure", "statements")
"""The values of a specification that figures show."""


class DrawnFigures:
    """The figures in a result directory, with digests of the numbers they were drawn from."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file = directory / "figures" / NOTE
        self._panels: dict[str, str] = {}

    def outdated(
        self, figures: Sequence[SweepFigure], *, everything: bool = False
    ) -> list[SweepFigure]:
        """Return the figures that are missing or whose numbers have changed, or all of them."""
        before = {} if everything else self._noted()
        return [
            figure
            for figure in figures
            if before.get(figure.name) != self._digest(figure) or not self._exists(figure)
        ]

    def note(self, figures: Iterable[SweepFigure]) -> None:
        """Note that these figures were drawn from the present numbers."""
        noted = self._noted() | {figure.name: self._digest(figure) for figure in figures}
        self._file.parent.mkdir(exist_ok=True)
        with whole_file(self._file) as file:
            file.write((json.dumps(noted, indent=1) + "\n").encode())

    def _noted(self) -> dict[str, str]:
        try:
            noted = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return noted if isinstance(noted, dict) else {}

    def _exists(self, figure: SweepFigure) -> bool:
        folder = self._file.parent
        return all((folder / f"{figure.name}.{ending}").is_file() for ending in ("png", "pdf"))

    def _digest(self, figure: SweepFigure) -> str:
        parts = [self._frame, repr(figure), *(self._of_panel(panel) for panel in figure.panels)]
        return hashlib.sha256("".join(parts).encode()).hexdigest()

    @cached_property
    def _frame(self) -> str:
        """What all figures depend on: the version, and which configurations there are."""
        specification = specification_in(self._directory)
        titles = {key: specification.get(key) for key in TITLES}
        every = configurations_in(self._directory)
        varying = [key for key in every[0] if len({panel[key] for panel in every}) > 1]
        return json.dumps([__version__, titles, varying], sort_keys=True)

    @cached_property
    def _tables(self) -> list[ResultTable]:
        return [ResultTable.read(self._directory, name) for name in (CURVES, FINALS)]

    def _of_panel(self, panel: Labels) -> str:
        """A digest of all numbers of a configuration; several figures show the same one."""
        key = repr(panel)
        if key not in self._panels:
            self._panels[key] = self._panel_digest(panel)
        return self._panels[key]

    def _panel_digest(self, panel: Labels) -> str:
        digest = hashlib.sha256()
        for table in self._tables:
            rows = table.where(panel)
            for name in rows.names:
                digest.update(repr(rows[name].tolist()).encode())
        return digest.hexdigest()
