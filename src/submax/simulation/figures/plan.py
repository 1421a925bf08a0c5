"""Which figures can be drawn from the results of a sweep; nothing is drawn here."""

import csv
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from submax._version import __version__
from submax.core.arrays import Floats
from submax.core.serialization import atomic_write
from submax.simulation.results import CURVE_TABLE, FINAL_TABLE, ResultTable


class MethodLook(NamedTuple):
    """Label, colour and dash of a family. Colours are those of Okabe and Ito (2008).

    They can be told apart by colour-blind readers; the dashes differ in black and white.
    """

    label: str
    colour: str
    dash: str | tuple[int, tuple[int, ...]]


SUBMAX = "SubMax"


RANDOM = "random"


FAMILIES: tuple[tuple[str, MethodLook], ...] = (
    (r"random", MethodLook(RANDOM, "#000000", ":")),
    (r"(neural-|climbing-)?epsilon-greedy-.*", MethodLook("ε-greedy", "#E69F00", "--")),
    (r"ucb1", MethodLook("UCB1", "#009E73", "-.")),
    (r"thompson-1-\d+", MethodLook("TS", "#56B4E9", (0, (5, 1, 1, 1)))),
    (r"(climbing-)?dropout-thompson", MethodLook("TS", "#56B4E9", (0, (5, 1, 1, 1)))),
    (r"rcp-optimistic", MethodLook("optimistic", "#CC79A7", (0, (3, 1)))),
    (r"rcp-optimized", MethodLook("optimized", "#0072B2", (0, (8, 2)))),
    (r"rcp-submax", MethodLook(SUBMAX, "#D55E00", "-")),
)
"""The names of the policies of each family, as a regular expression."""


CLASSIC = ("ε-greedy", "UCB1", "TS")


def method_of(policy: str) -> MethodLook | None:
    """Return the family of a policy; None if the policy is not in the paper."""
    for pattern, look in FAMILIES:
        if re.fullmatch(pattern, policy):
            return look
    return None


Labels = dict[str, Any]
"""The values of a configuration, by their names."""


def curves_of(directory: Path, panel: Labels) -> ResultTable:
    """Read the curves of all policies in one configuration."""
    return ResultTable.read(directory, CURVE_TABLE).where(panel)


def specification_in(directory: Path) -> dict[str, Any]:
    """The specification of the experiment, as it is in its manifest."""
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    specification: dict[str, Any] = manifest["specification"]
    return specification


def configurations_in(directory: Path) -> list[Labels]:
    """The labels of all configurations that have results."""
    table = ResultTable.read(directory, CURVE_TABLE)
    labels = table.labels
    return [dict(zip(labels, values, strict=True)) for values in table.distinct(*labels)]


def varying_labels(panels: Sequence[Labels]) -> list[str]:
    """The labels with more than one value among environments of the same kind, and the kind."""
    kinds: dict[Any, list[Labels]] = {}
    for panel in panels:
        kinds.setdefault(panel.get("environment"), []).append(panel)
    return [
        key
        for key in panels[0]
        if (key == "environment" and len(kinds) > 1)
        or any(len({str(panel[key]) for panel in group}) > 1 for group in kinds.values())
    ]


def final_rewards(directory: Path, panel: Labels) -> dict[str, Floats]:
    """The final reward of every replica by policy, in one configuration."""
    table = ResultTable.read(directory, FINAL_TABLE).where(panel)
    return {name: rows["reward"] for name, rows in table.by_policy().items()}


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
    varying = varying_labels(panels)
    singles = [SweepFigure(_panel_name(panel, varying), [panel], 1) for panel in panels]
    reference = _nearest(panels, specification.get("reference", {}))
    rows = [_row(panels, key, {one: reference[one] for one in varying}) for key in varying]
    figures = [*singles, *[row for row in rows if len(row.panels) > 1]]
    if len(panels) > 1:
        columns = min(len({panel[varying[0]] for panel in panels}), MOST_COLUMNS)
        keys = (*varying[1:], varying[0])
        ordered = sorted(panels, key=lambda panel: [_rank(panel[key]) for key in keys])
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


def _rank(value: Any) -> tuple[bool, bool, Any]:
    """A key to sort labels by: an environment of another kind may lack one, or have a text."""
    return (value is not None, isinstance(value, str), 0 if value is None else value)


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
    name = "-".join(
        ["panel", *(f"{key}={panel[key]}" for key in varying if panel[key] is not None)]
    )
    # Some systems do not allow these characters in the name of a file.
    return name.replace("/", "_").replace(":", "_")


NOTE = "drawn.json"
"""The file beside the figures with a digest of what each of them was drawn from."""


TITLES = ("title", "delay", "replicas", "measure", "statements")
"""The values of a specification that figures show."""


class DrawnFigures:
    """The figures in a result directory, with a digest of the results they were drawn from."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file = directory / "figures" / NOTE

    def outdated(
        self, figures: Sequence[SweepFigure], *, everything: bool = False
    ) -> list[SweepFigure]:
        """Return the figures that are missing or whose results have changed, or all of them."""
        before = {} if everything else self._noted()
        return [
            figure
            for figure in figures
            if before.get(figure.name) != self._digest or not self._exists(figure)
        ]

    def note(self, figures: Iterable[SweepFigure]) -> None:
        """Note that these figures were drawn from the present results."""
        noted = self._noted() | {figure.name: self._digest for figure in figures}
        self._file.parent.mkdir(exist_ok=True)
        with atomic_write(self._file) as file:
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

    @cached_property
    def _digest(self) -> str:
        specification = specification_in(self._directory)
        titles = {key: specification.get(key) for key in TITLES}
        digest = hashlib.sha256(json.dumps([__version__, titles], sort_keys=True).encode())
        for name in (CURVE_TABLE, FINAL_TABLE):
            for path in self._directory.glob(f"{name}.*"):
                digest.update(path.read_bytes())
        return digest.hexdigest()


ESTIMATES = "estimates.csv"


def read_estimates(directory: Path) -> list[dict[str, str]]:
    """The rows of the file ``estimates.csv`` in a directory."""
    with (directory / ESTIMATES).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
